//! Sets watches while a scan goes through the folders.

use std::io;
use std::path::Path;

use notify::{ErrorKind, RecursiveMode, Watcher};

use crate::trigger::drop_folder::dirty::Dirty;
use crate::trigger::drop_folder::polled::{Lack, Polled};
use crate::trigger::drop_folder::scan::{Id, Visit};

/// Comes along on a scan. Each folder gets a watch of its own before it is read: a watch that follows new folders by
/// itself misses what came into them before it got there.
pub(super) struct Arming<'a> {
    pub(super) inbox: &'a Path,
    pub(super) remote: fn(&Path) -> Option<&'static str>,
    pub(super) dirty: &'a Dirty,
    pub(super) watcher: Option<&'a mut (dyn Watcher + Send + 'static)>,
    pub(super) polled: &'a mut Polled,
}

impl Visit for Arming<'_> {
    fn enter(&mut self, folder: &Path, id: Id, above: Option<Id>) {
        let is_mount = above.is_none_or(|above| above.device != id.device);
        let remote = is_mount.then(|| (self.remote)(&self.inbox.join(folder))).flatten();
        self.polled.mounted(folder, remote);
        if !self.polled.lies_in_unwatched(folder) {
            self.arm(folder, id);
        }
    }

    fn trusts(&self, folder: &Path, id: Id) -> bool {
        self.dirty.armed().holds(folder, id) || self.polled.covers(folder)
    }
}

impl Arming<'_> {
    fn arm(&mut self, folder: &Path, id: Id) {
        let Some(watcher) = self.watcher.as_deref_mut() else {
            return;
        };
        if self.dirty.armed().holds(folder, id) {
            return;
        }
        // Noted first: an event that says that it went casts doubt on the note.
        let stale = self.dirty.armed().insert(folder, id);
        for place in stale {
            // It may have ended by itself.
            let _ = watcher.unwatch(&self.inbox.join(place));
        }
        let Err(error) = watcher.watch(&self.inbox.join(folder), RecursiveMode::NonRecursive) else {
            self.polled.watched(folder);
            return;
        };
        self.dirty.armed().disarm(folder);
        match error.kind {
            ErrorKind::MaxFilesWatch => self.polled.unwatched(folder, Lack::Limit),
            // The scan shows what went or may not be read.
            ErrorKind::PathNotFound => {}
            ErrorKind::Io(error)
                if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {}
            _ => self.polled.unwatched(folder, Lack::Refused(error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(device: u64, inode: u64) -> Id {
        Id { device, inode }
    }

    #[test]
    fn each_mount_is_asked_and_nothing_else() {
        let (disk, share) = (id(1, 1), id(2, 1));
        let mut polled = Polled::default();
        let dirty = Dirty::new(Path::new("/inbox"), 1);
        let mut arming = Arming {
            inbox: Path::new("/inbox"),
            remote: |folder| (folder == Path::new("/inbox/share")).then_some("NFS"),
            dirty: &dirty,
            watcher: None,
            polled: &mut polled,
        };
        arming.enter(Path::new(""), disk, None);
        arming.enter(Path::new("share"), share, Some(disk));
        arming.enter(Path::new("share/in"), id(2, 2), Some(share));
        arming.enter(Path::new("disk"), id(3, 1), Some(disk));
        assert_eq!(arming.polled.folders().collect::<Vec<_>>(), [Path::new("share")]);
        // It was unmounted, and the folder below is an ordinary one.
        arming.enter(Path::new("share"), id(1, 7), Some(disk));
        assert_eq!(arming.polled.folders().count(), 0);
    }
}
