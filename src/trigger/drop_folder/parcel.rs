//! What is claimed as a whole or not at all: files that are complete, what goes with them, and the runs they make.

use std::path::Path;
use std::sync::Arc;

use crate::event::input::{InputChange, RawPath, Role};
use crate::trigger::drop_folder::routes::Route;

/// Files that are taken together.
#[derive(Debug, Clone)]
pub struct Parcel {
    /// The files, as changes to `ready`, in the order of their paths; one at least.
    pub files: Vec<InputChange>,
    /// What goes with them.
    pub company: Vec<Companion>,
    /// The runs they make.
    pub work: Vec<Work>,
}

/// A file that goes with another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Companion {
    /// As a change to `ready`.
    pub change: InputChange,
    /// What it is for.
    pub role: Role,
    /// Whose: which of the files.
    pub of: usize,
}

/// One run.
#[derive(Debug, Clone)]
pub struct Work {
    /// The drop that starts it.
    pub route: Arc<Route>,
    /// Its inputs: which of the files.
    pub files: Vec<usize>,
}

impl Parcel {
    /// Everything in it, files first.
    pub fn changes(&self) -> impl Iterator<Item = &InputChange> {
        self.files.iter().chain(self.company.iter().map(|companion| &companion.change))
    }

    /// The folder that all files of a run lie in.
    pub fn folder(&self, work: &Work) -> RawPath {
        common(work.files.iter().map(|file| self.files[*file].path.as_path()))
    }
}

/// The folder that all paths lie in.
pub fn common<'a>(paths: impl IntoIterator<Item = &'a Path>) -> RawPath {
    let mut paths = paths.into_iter().map(|path| path.parent().unwrap_or(Path::new("")));
    let first = paths.next().unwrap_or(Path::new(""));
    let folder = paths.fold(first, |folder, path| {
        folder.ancestors().find(|above| path.starts_with(above)).unwrap_or(Path::new(""))
    });
    RawPath::new(folder)
}
