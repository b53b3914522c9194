//! Which folders are watched, by path and by what stands there.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::path::{Path, PathBuf};

use crate::trigger::drop_folder::scan::Id;

/// Folders with a watch of their own, relative to the inbox.
#[derive(Debug, Default)]
pub(super) struct Armed {
    folders: BTreeMap<PathBuf, Id>,
    places: HashMap<Id, PathBuf>,
}

impl Armed {
    /// Whether that very folder is watched there.
    pub(super) fn holds(&self, folder: &Path, id: Id) -> bool {
        self.folders.get(folder) == Some(&id)
    }

    /// It will be watched from now on. Gives the paths whose watches are to be ended first: the folder's own path when
    /// another folder stood there, and the path it had before. The system knows a folder by what it is, not by its
    /// path, so an old watch would take the new one along when it ends.
    pub(super) fn insert(&mut self, folder: &Path, id: Id) -> Vec<PathBuf> {
        let mut stale = Vec::new();
        if let Some(before) = self.folders.insert(folder.to_owned(), id)
            && before != id
        {
            self.places.remove(&before);
            stale.push(folder.to_owned());
        }
        if let Some(place) = self.places.insert(id, folder.to_owned())
            && place != folder
        {
            self.folders.remove(&place);
            stale.push(place);
        }
        stale
    }

    /// That folder and those below it are not watched any more, or must not be relied on.
    pub(super) fn forget(&mut self, folder: &Path) {
        let from = (Bound::Included(folder), Bound::Unbounded);
        let gone: Vec<PathBuf> = self
            .folders
            .range::<Path, _>(from)
            .map(|(path, _)| path)
            .take_while(|path| path.starts_with(folder))
            .cloned()
            .collect();
        for path in gone {
            if let Some(id) = self.folders.remove(&path) {
                self.places.remove(&id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(inode: u64) -> Id {
        Id { device: 1, inode }
    }

    #[test]
    fn a_folder_that_moved_or_was_replaced_has_stale_watches() {
        let mut armed = Armed::default();
        assert!(armed.insert(Path::new("a"), id(1)).is_empty());
        assert!(armed.insert(Path::new("a"), id(1)).is_empty());
        assert_eq!(armed.insert(Path::new("b"), id(1)), [Path::new("a")]);
        assert!(!armed.holds(Path::new("a"), id(1)) && armed.holds(Path::new("b"), id(1)));
        assert_eq!(armed.insert(Path::new("b"), id(2)), [Path::new("b")]);
        assert!(armed.insert(Path::new("c"), id(1)).is_empty());
    }

    #[test]
    fn what_lies_in_a_folder_is_forgotten_with_it() {
        let mut armed = Armed::default();
        for (inode, path) in (1..).zip(["", "a", "a/b", "a!", "ab"]) {
            armed.insert(Path::new(path), id(inode));
        }
        armed.forget(Path::new("a"));
        let left: Vec<&Path> = armed.folders.keys().map(PathBuf::as_path).collect();
        assert_eq!(left, ["", "a!", "ab"].map(Path::new));
        assert!(armed.insert(Path::new("elsewhere"), id(3)).is_empty());
        armed.forget(Path::new(""));
        assert!(armed.folders.is_empty() && armed.places.is_empty());
    }
}
