//! Which part of the inbox a look is about.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How far a look at a folder goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// Its own entries, and folders in it that nobody watches yet.
    Entries,
    /// Everything below it.
    Subtree,
}

/// The folders to be looked at, relative to the inbox; the inbox itself is the empty path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// The whole inbox.
    All,
    /// These folders. None is nothing to look at.
    Below(BTreeMap<PathBuf, Depth>),
}

impl Scope {
    /// Nothing to look at.
    pub fn none() -> Self {
        Self::Below(BTreeMap::new())
    }

    /// Whether there is nothing to look at.
    pub fn is_none(&self) -> bool {
        self.count() == Some(0)
    }

    /// How many folders; `None` when it is everything.
    pub fn count(&self) -> Option<usize> {
        match self {
            Self::All => None,
            Self::Below(folders) => Some(folders.len()),
        }
    }

    /// One folder more.
    pub fn add(&mut self, folder: &Path, depth: Depth) {
        if let Self::Below(folders) = self {
            let known = folders.entry(folder.to_owned()).or_insert(depth);
            *known = depth.max(*known);
        }
    }

    /// All that the other one names as well.
    pub fn merge(&mut self, other: Self) {
        match other {
            Self::All => *self = Self::All,
            Self::Below(folders) => folders.iter().for_each(|(folder, depth)| self.add(folder, *depth)),
        }
    }

    /// The folders to begin with, a folder before those in it.
    pub fn folders(&self) -> Vec<(PathBuf, Depth)> {
        match self {
            Self::All => vec![(PathBuf::new(), Depth::Subtree)],
            Self::Below(folders) => folders.iter().map(|(folder, depth)| (folder.clone(), *depth)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deeper_look_at_a_folder_stays_and_everything_takes_all() {
        let mut scope = Scope::none();
        assert!(scope.is_none());
        scope.add(Path::new("b"), Depth::Entries);
        scope.add(Path::new("a"), Depth::Subtree);
        scope.add(Path::new("a"), Depth::Entries);
        assert_eq!(scope.folders(), [("a".into(), Depth::Subtree), ("b".into(), Depth::Entries)]);
        scope.merge(Scope::All);
        scope.add(Path::new("c"), Depth::Entries);
        assert_eq!((scope.count(), scope.folders()), (None, vec![(PathBuf::new(), Depth::Subtree)]));
    }
}
