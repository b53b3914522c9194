//! Folders on the host that belong to one sandbox each, and to the process that made it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::RunId;
use crate::owner::{Life, Owner};

/// The file in a folder that says whose it is.
const OWNER: &str = "owner";

/// A folder of such folders.
#[derive(Debug)]
pub(in crate::sandbox) struct Folders {
    root: PathBuf,
    owner: Owner,
}

impl Folders {
    /// Those in `root`; made when there is one.
    pub(in crate::sandbox) fn new(root: PathBuf) -> Result<Self> {
        Ok(Self { root, owner: Owner::this_process()? })
    }

    /// A new one for a sandbox of `run`, marked as this process's.
    pub(in crate::sandbox) fn make(&self, run: &RunId) -> Result<PathBuf> {
        let folder = self.root.join(format!("{run}-{:08x}", fastrand::u32(..)));
        let made =
            fs::create_dir_all(&folder).and_then(|()| fs::write(folder.join(OWNER), self.owner.to_string()));
        made.map_err(|error| {
            Diagnostic::new("sandbox::disk", format!("cannot make {}", folder.display()))
                .cause(error)
                .help("is the disk with the project full?")
        })?;
        Ok(folder)
    }

    /// Hands those of dead processes to `remove`, which says whether it is gone. Gives how many are.
    pub(in crate::sandbox) fn sweep(&self, remove: impl Fn(&Path) -> bool) -> usize {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let dead = entries.map(|entry| entry.path()).filter(|folder| {
            let owner = fs::read_to_string(folder.join(OWNER)).ok().and_then(|label| Owner::parse(&label));
            owner.is_some_and(|owner| owner.life() == Life::Dead)
        });
        dead.filter(|folder| remove(folder)).count()
    }
}
