//! What a scan has looked at, so that what it did not look at is not taken for gone.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::trigger::drop_folder::scope::Depth;

/// Folders relative to the inbox, which is the empty path itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Looked {
    read: HashMap<PathBuf, Depth>,
    left: HashSet<PathBuf>,
}

impl Looked {
    /// All entries of that folder were seen.
    pub(super) fn read(&mut self, folder: &Path, depth: Depth) {
        self.read.insert(folder.to_owned(), depth);
    }

    /// That folder stands there and was not looked into, because it could not be read or did not have to be.
    pub(super) fn leave(&mut self, folder: &Path) {
        self.left.insert(folder.to_owned());
    }

    /// Whether that folder was read at least so far.
    pub(super) fn has_read(&self, folder: &Path, depth: Depth) -> bool {
        self.read.get(folder).is_some_and(|read| *read >= depth)
    }

    /// How many folders were read, the inbox included.
    pub fn folders(&self) -> usize {
        self.read.len()
    }

    /// Whether `path` would have been found if it stood there: the nearest folder above it that was read says so.
    pub fn covers(&self, path: &Path) -> bool {
        let mut below = path;
        for folder in path.ancestors().skip(1) {
            if self.read.contains_key(folder) {
                return !self.left.contains(below);
            }
            below = folder;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_looked_at_can_be_missed() {
        let mut looked = Looked::default();
        looked.read(Path::new("a"), Depth::Entries);
        looked.leave(Path::new("a/left"));
        looked.read(Path::new("a/left/again"), Depth::Subtree);
        let covers = |path: &str| looked.covers(Path::new(path));
        assert!(covers("a/x.csv") && covers("a/was-here/deep/x.csv"));
        assert!(!covers("x.csv") && !covers("b/x.csv") && !covers("a"));
        assert!(!covers("a/left"), "it was seen, as a folder");
        assert!(!covers("a/left/x.csv") && !covers("a/left/deep/x.csv"));
        assert!(covers("a/left/again/x.csv"));
    }
}
