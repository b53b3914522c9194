//! Which folders are watched, by path and by what stands there.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::path::{Path, PathBuf};

use crate::trigger::drop_folder::scan::Id;

/// Folders with a watch of their own, relative to the inbox.
///
/// The system knows a folder by what it is and not by its path, and a watch by its path ends when an event says that
/// this path went: the watch of a folder that has moved must be ended before the folder is watched at its new place, or
/// the news of the move, when it comes, ends both. So folders stay known here for as long as a watch may stand.
#[derive(Debug, Default)]
pub(super) struct Armed {
    folders: BTreeMap<PathBuf, Watched>,
    places: HashMap<Id, PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Watched {
    id: Id,
    standing: Standing,
}

/// Whether a watch is relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Sure,
    /// Something came or went under that name.
    Doubtful,
}

impl Armed {
    /// Whether that very folder is watched there for sure.
    pub(super) fn holds(&self, folder: &Path, id: Id) -> bool {
        self.folders.get(folder) == Some(&Watched { id, standing: Standing::Sure })
    }

    /// It will be watched from now on. Gives the paths whose watches are to be ended first: those at its path, unless it
    /// was watched there for sure, and those at the path it had before, with all that is below.
    pub(super) fn insert(&mut self, folder: &Path, id: Id) -> Vec<PathBuf> {
        if self.holds(folder, id) {
            return Vec::new();
        }
        let mut stale = match self.folders.get(folder) {
            // What is below is looked at next, and known by itself.
            Some(watched) if watched.id == id => vec![folder.to_owned()],
            Some(_) => self.remove(folder),
            None => Vec::new(),
        };
        if let Some(place) = self.places.get(&id).filter(|place| *place != folder).cloned() {
            stale.extend(self.remove(&place));
        }
        self.folders.insert(folder.to_owned(), Watched { id, standing: Standing::Sure });
        self.places.insert(id, folder.to_owned());
        stale
    }

    /// Something came or went under that name: it and all that is below is not relied on any more.
    pub(super) fn doubt(&mut self, folder: &Path) {
        for path in self.below(folder) {
            if let Some(watched) = self.folders.get_mut(&path) {
                watched.standing = Standing::Doubtful;
            }
        }
    }

    /// That folder has no watch.
    pub(super) fn disarm(&mut self, folder: &Path) {
        if let Some(watched) = self.folders.remove(folder)
            && self.places.get(&watched.id).is_some_and(|place| place == folder)
        {
            self.places.remove(&watched.id);
        }
    }

    /// Only those folders are there. Gives the paths whose watches are to be ended.
    pub(super) fn keep(&mut self, stands: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
        let gone: Vec<PathBuf> = self.folders.keys().filter(|folder| !stands(folder)).cloned().collect();
        for folder in &gone {
            self.disarm(folder);
        }
        gone
    }

    fn remove(&mut self, folder: &Path) -> Vec<PathBuf> {
        let removed = self.below(folder);
        for path in &removed {
            self.disarm(path);
        }
        removed
    }

    /// The folder and all that is below it.
    fn below(&self, folder: &Path) -> Vec<PathBuf> {
        let from = (Bound::Included(folder), Bound::Unbounded);
        let known = self.folders.range::<Path, _>(from).map(|(path, _)| path);
        known.take_while(|path| path.starts_with(folder)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(inode: u64) -> Id {
        Id { device: 1, inode }
    }

    fn armed(folders: &[&str]) -> Armed {
        let mut armed = Armed::default();
        for (inode, path) in (1..).zip(folders) {
            assert!(armed.insert(Path::new(path), id(inode)).is_empty());
        }
        armed
    }

    #[test]
    fn a_folder_that_moved_takes_its_watches_along() {
        let mut armed = armed(&["a", "a/b", "a!", "ab"]);
        assert!(armed.insert(Path::new("a"), id(1)).is_empty());
        assert_eq!(armed.insert(Path::new("c"), id(1)), ["a", "a/b"].map(Path::new));
        assert!(armed.insert(Path::new("c/b"), id(2)).is_empty());
        assert!(!armed.holds(Path::new("a"), id(1)) && armed.holds(Path::new("c"), id(1)));
        assert!(armed.holds(Path::new("a!"), id(3)) && armed.holds(Path::new("ab"), id(4)));
    }

    #[test]
    fn another_folder_under_the_same_name_is_watched_anew() {
        let mut armed = armed(&["a", "a/b"]);
        assert_eq!(armed.insert(Path::new("a"), id(7)), ["a", "a/b"].map(Path::new));
        assert!(armed.insert(Path::new("elsewhere"), id(1)).is_empty());
    }

    #[test]
    fn what_came_or_went_is_doubted_and_not_forgotten() {
        let mut armed = armed(&["a", "a/b", "a!"]);
        armed.doubt(Path::new("a"));
        assert!(!armed.holds(Path::new("a"), id(1)) && !armed.holds(Path::new("a/b"), id(2)));
        assert!(armed.holds(Path::new("a!"), id(3)));
        assert_eq!(armed.insert(Path::new("a"), id(1)), [Path::new("a")]);
        assert!(armed.holds(Path::new("a"), id(1)) && !armed.holds(Path::new("a/b"), id(2)));
        assert_eq!(armed.insert(Path::new("c"), id(2)), [Path::new("a/b")]);
        assert_eq!(armed.keep(|folder| folder == Path::new("a")), ["a!", "c"].map(Path::new));
        assert!(armed.insert(Path::new("d"), id(3)).is_empty());
    }
}
