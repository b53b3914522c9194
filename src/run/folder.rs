//! Where a run keeps its files on the host: `.tidemill/runs/<id>/`.

use std::path::{Path, PathBuf};

use crate::diagnostic::{Diagnostic, Result, is_full};
use crate::event::id::RunId;
use crate::event::trigger::Trigger;
use crate::store::RunRow;

/// The run's own copies of its inputs.
const INPUT: &str = "input";

/// Parts that are only needed while the run works.
const PASSING: [&str; 3] = [INPUT, "artifacts", "passing"];

/// The code of what fails because a disk is full.
pub const DISK_FULL: &str = "run::disk_full";

/// A run's folder. What it holds while the run works goes away with [`RunFolder::tidy`]; what is kept aside stays.
#[derive(Debug, Clone)]
pub struct RunFolder(PathBuf);

impl RunFolder {
    /// Of this run, under the project's state folder.
    pub fn new(state: &Path, run: &RunId) -> Self {
        Self(state.join("runs").join(run.as_str()))
    }

    /// The run's own copy of its input number `index`. The name is ours, never the sender's.
    pub fn input(&self, index: usize) -> PathBuf {
        self.0.join(INPUT).join(index.to_string())
    }

    /// Where attempt number `attempt` brings its artifacts.
    pub fn artifacts(&self, attempt: u32) -> PathBuf {
        self.0.join("artifacts").join(attempt.to_string())
    }

    /// The file whose lock says that a process carries the run out.
    pub fn lock(&self) -> PathBuf {
        self.0.join("lock")
    }

    /// Where files of a run stay that publishes nothing.
    pub fn kept(&self) -> PathBuf {
        self.0.join("kept")
    }

    /// Makes the folder of a run that is about to be queued. Gives whether nobody else has it: ids are drawn, and two
    /// may draw the same.
    pub fn reserve(&self) -> Result<bool> {
        if let Some(above) = self.0.parent() {
            Self::make(above)?;
        }
        match std::fs::create_dir(&self.0) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
            // Any other error is told by the same words.
            _ => Self::make(&self.0).map(|()| true),
        }
    }

    /// Makes `folder` of this run, with what is above it.
    pub fn make(folder: &Path) -> Result<()> {
        std::fs::create_dir_all(folder).map_err(|error| {
            let code = if is_full(&error) { DISK_FULL } else { "run::folder" };
            Diagnostic::new(code, format!("cannot make the folder {}", folder.display())).cause(error).help(
                "`tidemill doctor` checks that the project's folders can be written and the disk has room",
            )
        })
    }

    /// Removes what a dead process took out for attempt number `attempt`.
    pub fn forget_artifacts(&self, attempt: u32) {
        // Where there are none, nothing is to be removed.
        let _ = std::fs::remove_dir_all(self.artifacts(attempt));
    }

    /// Where files are on their way from the workspace to the blob store.
    pub fn passing(&self) -> PathBuf {
        self.0.join("passing")
    }

    /// Whether it holds anything that [`RunFolder::tidy_after`] removes, or nothing at all.
    pub fn is_untidy_after(&self, run: &RunRow) -> bool {
        let is_empty = || std::fs::read_dir(&self.0).is_ok_and(|mut entries| entries.next().is_none());
        passing(run).any(|part| self.0.join(part).exists()) || self.lock().exists() || is_empty()
    }

    /// Removes what the run can make again when it goes on. Its own copy of an input that stands nowhere else stays.
    pub fn tidy_until_later(&self, run: &RunRow) {
        if run.input.is_some() {
            self.tidy();
        } else {
            let _ = std::fs::remove_dir_all(self.0.join("artifacts"));
        }
    }

    /// Removes what is only needed while the run works. What a request brought stands nowhere else, and the run may be
    /// done over: it stays until the run is forgotten.
    pub fn tidy_after(&self, run: &RunRow) {
        self.remove(passing(run));
    }

    /// Removes all that is only needed while a run works.
    pub fn tidy(&self) {
        self.remove(PASSING.into_iter());
    }

    fn remove(&self, parts: impl Iterator<Item = &'static str>) {
        for part in parts {
            // What cannot be removed now does no harm and is found by its run's id.
            let _ = std::fs::remove_dir_all(self.0.join(part));
        }
        let _ = std::fs::remove_file(self.lock());
        // Only goes away when nothing is kept in it.
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// The parts that nobody needs when the run has ended.
fn passing(run: &RunRow) -> impl Iterator<Item = &'static str> {
    let has_brought = run.trigger == Trigger::Webhook;
    PASSING.into_iter().filter(move |part| !has_brought || *part != INPUT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_reserved_once() {
        let state = tempfile::tempdir().expect("a folder");
        let run = RunId::parse("20261130-230000-abcd").expect("an id");
        let folder = RunFolder::new(state.path(), &run);
        assert!(folder.reserve().expect("writable"));
        assert!(!folder.reserve().expect("writable"));
        folder.tidy();
        assert!(folder.reserve().expect("writable"));
    }
}
