//! Room on the disks that the daemon writes to: below a limit nothing new begins, so that what is in work can end.

use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::config::Project;
use crate::diagnostic::{Diagnostic, Result};
use crate::workflow::units::show_size;

/// The disks, and how much must be free on each.
#[derive(Debug, Clone)]
pub(crate) struct Room {
    least: u64,
    folders: [PathBuf; 2],
}

impl Room {
    /// Those of the project's state and of its outbox.
    pub(crate) fn of(project: &Project) -> Self {
        Self { least: project.config.watch.min_free, folders: [project.state(), project.outbox()] }
    }

    /// Errors: `watch::low_disk` when one has too little room.
    pub(crate) fn check(&self) -> Result<()> {
        let low = self.folders.iter().find_map(|folder| {
            let free = space(folder)?.free;
            (free < self.least).then_some((folder, free))
        });
        let Some((folder, free)) = low else { return Ok(()) };
        let (free, least) = (show_size(free), show_size(self.least));
        let message =
            format!("{free} are free on the disk with {}, and {least} are kept free", folder.display());
        Err(Diagnostic::new("watch::low_disk", message).help(
            "it goes on by itself when there is room; `min_free` under [watch] in tidemill.toml is the limit",
        ))
    }
}

/// Bytes of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Space {
    /// What this user may still write.
    pub(crate) free: u64,
    /// All of it.
    pub(crate) total: u64,
}

/// The disk where `folder` is or will be.
pub(crate) fn space(folder: &Path) -> Option<Space> {
    for above in folder.ancestors() {
        match rustix::fs::statvfs(above) {
            Ok(disk) => {
                let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
                return Some(Space { free: bytes(disk.f_bavail), total: bytes(disk.f_blocks) });
            }
            // It is made when something is published.
            Err(Errno::NOENT) => {}
            // A disk that does not answer is told of by whatever is written there.
            Err(_) => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_room_is_said_with_its_numbers() {
        let folder = tempfile::tempdir().expect("a folder");
        let room = |least| Room { least, folders: [folder.path().to_owned(), folder.path().join("not/yet")] };
        assert!(room(1).check().is_ok());
        let low = room(u64::MAX).check().expect_err("no disk is so large");
        assert_eq!(low.code(), "watch::low_disk");
        assert!(low.message().contains(&folder.path().display().to_string()), "{low}");
    }
}
