//! Sandboxes that somebody will come back for: they run on when their process dies, and no sweep takes them.
//!
//! Each has a file in the project's state, named after it, that holds its run. The sandbox carries the path of that
//! state as a label, so that whoever sweeps can look, of whatever project it is. Where the state is gone, so is the run.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::RunId;

/// The sandboxes of one project that are awaited.
#[derive(Debug, Clone)]
pub struct Awaited(PathBuf);

/// Where such files are, in a project's state.
const FOLDER: &str = "sandboxes";

impl Awaited {
    /// Those of the project with that state folder.
    pub fn new(state: &Path) -> Self {
        Self(state.join(FOLDER))
    }

    /// Notes that the sandbox `name` waits for `run`.
    pub(in crate::sandbox) fn note(&self, name: &str, run: &RunId) -> Result<()> {
        let path = self.0.join(name);
        fs::create_dir_all(&self.0).and_then(|()| fs::write(&path, run.as_str())).map_err(|error| {
            Diagnostic::new("sandbox::disk", format!("cannot write {}", path.display()))
                .cause(error)
                .help("is the disk with the project full?")
        })
    }

    /// The run for which the sandbox `name` waits.
    pub(in crate::sandbox) fn run_of(&self, name: &str) -> Option<RunId> {
        RunId::parse(&fs::read_to_string(self.0.join(plain(name)?)).ok()?)
    }

    /// The sandbox is gone, or nobody will come back for it: the next sweep takes it.
    pub fn forget(&self, name: &str) {
        // One that is not there is not awaited.
        let _ = plain(name).map(|name| fs::remove_file(self.0.join(name)));
    }

    /// All that are awaited: their names, and for which run.
    pub fn all(&self) -> Result<Vec<(String, RunId)>> {
        let entries = match fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => {
                let message = format!("cannot read {}", self.0.display());
                return Err(Diagnostic::new("sandbox::disk", message)
                    .cause(error)
                    .help("the folder .tidemill and all in it must be readable for this user"));
            }
        };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        Ok(names.filter_map(|name| Some((name.clone(), self.run_of(&name)?))).collect())
    }
}

/// A name that leads nowhere else: labels on an engine are anybody's to write.
fn plain(name: &str) -> Option<&str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-';
    (!name.is_empty() && name.chars().all(fits)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sandbox_is_awaited_until_it_is_forgotten() {
        let state = tempfile::tempdir().expect("a folder");
        let awaited = Awaited::new(state.path());
        let run = RunId::parse("20261201-120000-abcd").expect("an id");
        assert_eq!(awaited.all().expect("a list"), []);
        awaited.note("tidemill-x", &run).expect("a note");
        assert_eq!(awaited.run_of("tidemill-x"), Some(run.clone()));
        assert_eq!(awaited.all().expect("a list"), [("tidemill-x".to_owned(), run)]);
        assert_eq!(awaited.run_of("../sandboxes/tidemill-x"), None, "a label leads out of the folder");
        awaited.forget("tidemill-x");
        assert_eq!(awaited.all().expect("a list"), []);
    }
}
