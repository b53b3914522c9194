//! What was fetched for the workspace: `.tidemill/cache/`. All of it can be deleted; it is fetched again.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::NamedTempFile;

use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::{Digest, copy_hashed};

/// What begins so is being made, or was when its process died.
pub(super) const NEW: &str = ".new-";
/// No fetch takes so long.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// The cache of a project.
#[derive(Debug, Clone)]
pub(super) struct Cache(PathBuf);

impl Cache {
    /// Of the project with that state folder.
    pub(super) fn new(state: &Path) -> Self {
        Self(state.join("cache"))
    }

    /// The file with that content, when it is there whole.
    pub(super) fn file(&self, digest: &Digest) -> Option<PathBuf> {
        let path = self.place(digest);
        let mut file = File::open(&path).ok()?;
        let (found, _) = copy_hashed(&mut file, &mut std::io::sink()).ok()?;
        (found == *digest).then_some(path)
    }

    /// A new file that goes away unless it is kept.
    pub(super) fn new_file(&self) -> Result<NamedTempFile> {
        let folder = self.0.join("files");
        make(&folder)?;
        forget(&folder, |path| {
            let age = path.metadata().and_then(|data| data.modified()).map(|at| at.elapsed());
            age.is_ok_and(|age| age.is_ok_and(|age| age > ABANDONED))
        });
        NamedTempFile::with_prefix_in(NEW, &folder).map_err(|error| unwritable(&folder, error))
    }

    /// Keeps a file whose content has that hash, as the caller has found out.
    pub(super) fn keep(&self, file: NamedTempFile, digest: &Digest) -> Result<PathBuf> {
        let path = self.place(digest);
        let drawer = path.parent().unwrap_or(&self.0);
        make(drawer)?;
        file.as_file().sync_all().map_err(|error| unwritable(&path, error))?;
        file.persist(&path).map_err(|error| unwritable(&path, error.error))?;
        Ok(path)
    }

    /// Copies what `source` gives into the cache when its hash is `digest`; nothing when it is another.
    pub(super) fn copy(&self, source: &mut dyn Read, digest: &Digest) -> Result<Option<PathBuf>> {
        let mut file = self.new_file()?;
        let (found, _) =
            copy_hashed(source, file.as_file_mut()).map_err(|error| unwritable(&self.0, error))?;
        if found == *digest { self.keep(file, digest).map(Some) } else { Ok(None) }
    }

    /// The folder of a repository.
    pub(super) fn repository(&self, address: &str) -> Result<PathBuf> {
        let folder = self.0.join("git").join(&Digest::of(address).as_str()[..32]);
        make(&folder)?;
        Ok(folder)
    }

    fn place(&self, digest: &Digest) -> PathBuf {
        self.0.join("files").join(&digest.as_str()[..2]).join(digest.as_str())
    }
}

/// Removes what was being made in `folder` and is `abandoned`.
pub(super) fn forget(folder: &Path, abandoned: impl Fn(&Path) -> bool) {
    // What cannot be listed or removed does no harm.
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_name().as_encoded_bytes().starts_with(NEW.as_bytes()) && abandoned(&path) {
            let _ = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
        }
    }
}

fn make(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, error))
}

/// The cache cannot be written to.
pub(super) fn unwritable(path: &Path, error: std::io::Error) -> Diagnostic {
    let help = if error.kind() == std::io::ErrorKind::StorageFull {
        "the disk is full; `.tidemill/cache` can be deleted while nothing runs"
    } else {
        "the folder .tidemill/cache must be writable for this user; it can be deleted while nothing runs"
    };
    Diagnostic::new("manifest::cache", format!("cannot write to {}", path.display())).cause(error).help(help)
}
