//! Filling what can be filled.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use super::attempt::words;
use super::{Asked, Held, Probe};

pub(super) const PROBES: &[Probe] = &[
    Probe::new("disk/workspace", "The workspace ends at its limit.", workspace),
    Probe::new("disk/temporary", "So does /tmp.", temporary),
    Probe::new("disk/shared-memory", "So does /dev/shm.", shared_memory),
    Probe::new("disk/entries", "The number of files is limited as well.", entries),
];

/// A little more than the limit: without one, the machine loses this much for a moment and no more.
const BEYOND: u64 = 32 << 20;
/// Bytes written at a time.
const PIECE: usize = 1 << 20;
/// More than any sandbox gives.
const SHARED: u64 = 64 << 20;
/// No space, quota reached, file too large.
const FULL: [i32; 3] = [28, 122, 27];

fn workspace(asked: &Asked) -> Held {
    fill("/workspace", asked.disk)
}

fn temporary(asked: &Asked) -> Held {
    fill("/tmp", asked.tmp)
}

fn shared_memory(_: &Asked) -> Held {
    if Path::new("/dev/shm").is_dir() { fill("/dev/shm", SHARED) } else { Ok("there is none".to_owned()) }
}

fn fill(folder: &str, limit: u64) -> Held {
    let path = format!("{folder}/.probe-full");
    let mut file = match OpenOptions::new().write(true).create_new(true).open(&path) {
        Ok(file) => file,
        Err(error) => return Ok(format!("it cannot be written: {}", words(&error))),
    };
    let written = write_until_full(&mut file, limit + BEYOND);
    // What was filled is needed by the next.
    let _ = fs::remove_file(&path);
    match written {
        (bytes, Some(error)) if is_full(&error) => Ok(format!("{} after {} MiB", words(&error), bytes >> 20)),
        (bytes, Some(error)) => Err(format!("after {bytes} bytes: {}", words(&error))),
        (bytes, None) => Err(format!("{} MiB, and no end", bytes >> 20)),
    }
}

fn write_until_full(file: &mut File, most: u64) -> (u64, Option<io::Error>) {
    let piece = vec![1; PIECE];
    let mut written = 0;
    while written < most {
        if let Err(error) = file.write_all(&piece) {
            return (written, Some(error));
        }
        written += PIECE as u64;
    }
    (written, None)
}

fn is_full(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| FULL.contains(&code))
}

fn entries(asked: &Asked) -> Held {
    let folder = Path::new("/workspace/.probe-entries");
    fs::create_dir(folder).map_err(|error| words(&error))?;
    let mut made = 0;
    let mut end = None;
    while made < asked.inodes + 1000 {
        match File::create_new(folder.join(made.to_string())) {
            Ok(_) => made += 1,
            Err(error) => {
                end = Some(error);
                break;
            }
        }
    }
    // What was filled is needed by the next.
    let _ = fs::remove_dir_all(folder);
    match end {
        Some(error) if is_full(&error) => Ok(format!("{} after {made}", words(&error))),
        Some(error) => Err(format!("after {made}: {}", words(&error))),
        None => Err(format!("{made}, and no end")),
    }
}
