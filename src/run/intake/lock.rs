//! One daemon per project.

use std::fs::{File, OpenOptions};
use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::clock::{Clock as _, SystemClock};
use crate::diagnostic::{Diagnostic, Result};
use crate::owner::{Life, Owner};

/// Who watches a project. The lock decides; this only says who has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Machine, boot, process id and start of the process.
    pub owner: Owner,
    /// Since when.
    pub since: Timestamp,
}

/// A holder as the lock file has it: one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    owner: String,
    since: Timestamp,
}

impl Holder {
    fn this_process() -> Result<Self> {
        Ok(Self { owner: Owner::this_process()?, since: SystemClock::new().now() })
    }

    fn parse(text: &str) -> Option<Self> {
        let line: Line = serde_json::from_str(text).ok()?;
        Some(Self { owner: Owner::parse(&line.owner)?, since: line.since })
    }

    fn line(&self) -> String {
        serde_json::json!({ "owner": self.owner.to_string(), "since": self.since }).to_string()
    }

    /// A process id alone may be another's by now.
    fn words(&self) -> String {
        let (pid, since) = (self.owner.pid(), self.since);
        match self.owner.life() {
            Life::Alive => format!("by process {pid} since {since:.0}"),
            Life::Unknown => format!("by process {pid} of another machine or container since {since:.0}"),
            Life::Dead => format!("by a process that process {pid} has left behind"),
        }
    }
}

/// Held while a process watches the project; the system lets go of it however the process ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
    holder: Holder,
}

impl Lock {
    const FILE: &str = "watch.lock";

    /// Takes the lock of the project with that state folder.
    ///
    /// Errors: `watch::running` with who has it.
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
                let words =
                    Self::holder(state).map_or_else(|| "by another process".to_owned(), |it| it.words());
                return Err(Diagnostic::new(
                    "watch::running",
                    format!("this project is watched already, {words}"),
                )
                .help("use that one, or end it first: `tidemill drain`, or Ctrl-C there"));
            }
            Err(error) => return Err(failed(error.into())),
        }
        let holder = Holder::this_process()?;
        file.set_len(0).map_err(failed)?;
        file.rewind().map_err(failed)?;
        writeln!(file, "{}", holder.line()).map_err(failed)?;
        Ok(Self { _file: file, holder })
    }

    /// Who holds it: this process.
    pub(crate) fn this(&self) -> &Holder {
        &self.holder
    }

    /// Who held the lock of the project with that state folder last; whether it is held is another question.
    pub fn holder(state: &Path) -> Option<Holder> {
        Holder::parse(&std::fs::read_to_string(state.join(Self::FILE)).ok()?)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_named_as_far_as_it_is_known() {
        let this = Holder::this_process().expect("a process");
        assert_eq!(Holder::parse(&this.line()), Some(this.clone()));
        assert_eq!(Holder::parse("4711"), None, "an older tidemill's");
        let pid = std::process::id();
        assert!(this.words().starts_with(&format!("by process {pid} since 20")), "{}", this.words());
        // The same number, started at another time: it is not the one that took the lock.
        let (rest, _) = this
            .owner
            .to_string()
            .rsplit_once('/')
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .expect("a start");
        let reused = Holder { owner: Owner::parse(&format!("{rest}/1")).expect("an owner"), ..this };
        assert_eq!(reused.words(), format!("by a process that process {pid} has left behind"));
    }
}
