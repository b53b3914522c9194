//! A project in a temporary folder, gone when it is dropped.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Builds a project file by file.
#[derive(Debug)]
pub struct Project {
    folder: TempDir,
}

impl Project {
    /// With an empty `tidemill.toml`, and the folders a project has.
    pub fn new() -> Self {
        let folder = TempDir::with_prefix("tidemill-test-").expect("a temporary folder");
        let project = Self { folder };
        for name in ["workflows", "images", "inbox", "outbox"] {
            fs::create_dir(project.path(name)).expect("an empty project");
        }
        project.config("")
    }

    /// With this `tidemill.toml`.
    pub fn config(self, text: &str) -> Self {
        self.file("tidemill.toml", text)
    }

    /// With this script in `workflows/`.
    pub fn workflow(self, name: &str, text: &str) -> Self {
        self.file(Path::new("workflows").join(name), text)
    }

    /// With this file; its folders are made.
    pub fn file(self, path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> Self {
        self.put(path, bytes);
        self
    }

    /// Writes a file into the project as it stands.
    pub fn put(&self, path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a writable folder");
        fs::write(path, bytes).expect("a written file");
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    /// A path in it.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Opened as the program does.
    pub fn open(&self) -> tidemill::config::Project {
        tidemill::config::Project::open(self.root()).expect("a valid project")
    }

    /// The files below a folder, relative to it and sorted; none when it is missing.
    pub fn files(&self, folder: impl AsRef<Path>) -> Vec<PathBuf> {
        let base = self.path(folder);
        let mut found = Vec::new();
        let mut folders = vec![base.clone()];
        while let Some(folder) = folders.pop() {
            let Ok(entries) = fs::read_dir(&folder) else {
                continue;
            };
            for entry in entries {
                let path = entry.expect("an entry").path();
                if path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
                    folders.push(path);
                } else {
                    found.push(path.strip_prefix(&base).expect("below").to_owned());
                }
            }
        }
        found.sort();
        found
    }
}

impl Default for Project {
    fn default() -> Self {
        Self::new()
    }
}
