//! One daemon per project.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::diagnostic::{Diagnostic, Result};

/// Held while a process watches the project; the system lets go of it however the process ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    const FILE: &str = "watch.lock";

    /// Takes the lock of the project with that state folder.
    ///
    /// Errors: `watch::running` with the other's process id.
    pub(super) fn take(state: &Path) -> Result<Self> {
        let path = state.join(Self::FILE);
        let failed = |error: std::io::Error| {
            Diagnostic::new("watch::no_lock", format!("cannot lock {}", path.display()))
                .cause(error)
                .help("the folder .tidemill must be writable, on a disk that can lock files")
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        match patiently(&file) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let mut pid = String::new();
                let _ = file.read_to_string(&mut pid);
                let pid: String = pid.trim().chars().filter(char::is_ascii_digit).collect();
                return Err(Diagnostic::new(
                    "watch::running",
                    format!("this project is watched already, by process {pid}"),
                )
                .help("use that one, or stop it first (Ctrl-C there)"));
            }
            Err(error) => return Err(failed(error.into())),
        }
        file.set_len(0).map_err(failed)?;
        file.rewind().map_err(failed)?;
        writeln!(file, "{}", std::process::id()).map_err(failed)?;
        Ok(Self { _file: file })
    }

    /// Whether a daemon watches the project with that state folder.
    pub(super) fn is_held(state: &Path) -> bool {
        // Taken for a moment only; nothing is made where nothing is.
        File::open(state.join(Self::FILE))
            .is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockShared).is_err())
    }
}

/// Takes the lock at once, unless somebody only asks at this moment whether it is held.
fn patiently(file: &File) -> rustix::io::Result<()> {
    const TRIES: u32 = 10;
    const PAUSE: Duration = Duration::from_millis(5);
    for _ in 1..TRIES {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => std::thread::sleep(PAUSE),
            done => return done,
        }
    }
    flock(file, FlockOperation::NonBlockingLockExclusive)
}
