//! Memory, processor, open files: what the kernel holds a command to.

use std::fs;
use std::hint::black_box;

use super::attempt::refused;
use super::{Asked, Death, Held, Probe};
use crate::sys::probe as sys;

pub(super) const PROBES: &[Probe] = &[
    Probe::new("limits/memory", "The memory limit is set in the kernel.", memory),
    Probe::new("limits/swap", "What does not fit in memory is not swapped to the host's disk.", swap),
    Probe::new("limits/processor", "The processor limit is set in the kernel.", processor),
    Probe::new("limits/core-dumps", "A program that crashes writes no memory image.", core_dumps),
    Probe::new("limits/open-files", "Open files are limited, and the limit cannot be raised.", open_files),
    Probe {
        death: Death::Wanted,
        ..Probe::new(
            "limits/memory-hog",
            "A program that takes too much memory is ended, and only that one.",
            memory_hog,
        )
    },
];

/// The first of these control files that there is.
fn control(paths: [&str; 2]) -> Option<String> {
    paths.into_iter().find_map(|path| fs::read_to_string(path).ok()).map(|text| text.trim().to_owned())
}

fn memory(asked: &Asked) -> Held {
    let set = control(["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]);
    let set = set.ok_or("the limit cannot be read")?;
    // The kernel rounds down to whole pages.
    match set.parse::<u64>() {
        Ok(bytes) if bytes <= asked.memory => Ok(format!("{bytes} bytes")),
        _ => Err(format!("it is {set}, not {}", asked.memory)),
    }
}

fn swap(asked: &Asked) -> Held {
    let none = fs::read_to_string("/proc/swaps").is_ok_and(|text| text.lines().count() <= 1);
    let set =
        control(["/sys/fs/cgroup/memory.swap.max", "/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes"]);
    match set.as_deref().map(str::parse::<u64>) {
        Some(Ok(bytes)) if bytes <= asked.memory => Ok("none may be used".to_owned()),
        _ if none => Ok("the machine has none".to_owned()),
        _ => Err(format!("the limit is {}", set.as_deref().unwrap_or("not there"))),
    }
}

fn processor(_: &Asked) -> Held {
    let set = control(["/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us"]);
    let set = set.ok_or("the limit cannot be read")?;
    if set.starts_with("max") || set.starts_with('-') { Err("there is none".to_owned()) } else { Ok(set) }
}

/// Soft and hard limit of `/proc/self/limits`.
fn limit(name: &str) -> Result<(String, String), String> {
    let text = fs::read_to_string("/proc/self/limits").map_err(|error| error.to_string())?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)).ok_or_else(|| format!("no {name}"))?;
    let mut words = line.split_whitespace().map(str::to_owned);
    Ok((words.next().unwrap_or_default(), words.next().unwrap_or_default()))
}

fn core_dumps(_: &Asked) -> Held {
    match limit("Max core file size")? {
        (_, hard) if hard == "0" => Ok("0 bytes".to_owned()),
        (_, hard) => Err(format!("{hard} bytes")),
    }
}

fn open_files(_: &Asked) -> Held {
    let (_, hard) = limit("Max open files")?;
    let refusal = refused(sys::raise_open_files())?;
    Ok(format!("{hard}; more: {refusal}"))
}

/// A little more than the limit: without one, the machine loses this much for a moment and no more.
const BEYOND: u64 = 64 << 20;
/// Bytes taken at a time.
const PIECE: usize = 1 << 20;

fn memory_hog(asked: &Asked) -> Held {
    // Whoever has to be ended, it should be this one.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
    let mut taken = Vec::new();
    for _ in 0..(asked.memory + BEYOND) / PIECE as u64 {
        let mut piece: Vec<u8> = Vec::new();
        if let Err(error) = piece.try_reserve_exact(PIECE) {
            return Ok(format!("it got no more: {error}"));
        }
        piece.resize(PIECE, 1);
        taken.push(black_box(piece));
    }
    Err(format!("it has {} MiB", taken.len()))
}
