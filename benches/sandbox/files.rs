//! The files that are moved.

use std::path::Path;

use tempfile::TempDir;
use tidemill::sandbox::{Body, Placement};
use tidemill::workflow::manifest::Access;
use tidemill::workflow::path::WorkspacePath;

/// Bytes of a small file.
const SMALL: usize = 1000;
/// Files in one folder.
const IN_ONE: usize = 100;

/// Files in a folder of their own.
pub struct Files {
    folder: TempDir,
    names: Vec<String>,
    name: String,
}

impl Files {
    /// Many small ones.
    pub fn small(count: usize) -> Self {
        let names = (0..count).map(|number| format!("{}/{number}.txt", number / IN_ONE));
        let files = Self::new(names.collect(), format!("{count} small files"));
        for name in &files.names {
            files.write(name, &vec![b'x'; SMALL]);
        }
        files
    }

    /// One big one.
    pub fn big(bytes: u64) -> Self {
        let files = Self::new(vec!["big".to_owned()], format!("{} MB", bytes >> 20));
        files.write("big", b"begins");
        // Its room is taken when it is written: what is sparse would cost nothing to read.
        let mut source = std::io::Read::take(std::fs::File::open("/dev/urandom").expect("random"), bytes);
        let mut target = std::fs::File::create(files.folder.path().join("big")).expect("a file");
        std::io::copy(&mut source, &mut target).expect("a big file");
        files
    }

    fn new(names: Vec<String>, name: String) -> Self {
        Self { folder: TempDir::with_prefix("tidemill-bench-").expect("a folder"), names, name }
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, bytes).expect("a file");
    }

    /// What they are called in the table.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where they are on the host.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where they are in the workspace.
    pub fn paths(&self, under: &str) -> Vec<WorkspacePath> {
        let path = |name: &String| WorkspacePath::parse(&format!("{under}/{name}")).expect("a path");
        self.names.iter().map(path).collect()
    }

    /// As a manifest places them.
    pub fn placements(&self, under: &str, access: Access) -> Vec<Placement> {
        let files = self.names.iter().map(|name| Body::File(self.folder.path().join(name)));
        self.paths(under)
            .into_iter()
            .zip(files)
            .map(|(path, body)| Placement::new(path, body, access))
            .collect()
    }
}
