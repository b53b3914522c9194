//! The list of a workspace's files: which content stands where.

use serde::{Deserialize, Serialize};

use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::Digest;
use crate::sandbox::{Body, Placement};
use crate::store::Store;
use crate::workflow::manifest::Access;
use crate::workflow::mode::Mode;
use crate::workflow::path::WorkspacePath;

/// Bytes of a list; with more files than fit in it nothing is kept in the first place.
const LARGEST: u64 = 256 << 20;

/// All files of a workspace but those that were given to it for reading.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tree {
    /// In the order of paths.
    pub files: Vec<Leaf>,
    /// Folders in which nothing stands.
    pub folders: Vec<String>,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leaf {
    /// Where it stands in the workspace.
    pub path: String,
    /// Hash of its content, which is a blob.
    pub digest: Digest,
    /// Its permission bits.
    pub mode: u32,
    /// Bytes.
    pub size: u64,
}

impl Tree {
    /// Keeps the list. The same files always make the same list.
    pub async fn put(&self, store: &Store) -> Result<Digest> {
        let text = serde_json::to_vec(self).map_err(|error| unreadable(&error.to_string()))?;
        store.blobs().put(text).await
    }

    /// Reads a list that was kept.
    pub async fn read(store: &Store, digest: &Digest) -> Result<Self> {
        let bytes = store.blobs().read(digest, LARGEST).await?;
        serde_json::from_slice(&bytes).map_err(|error| unreadable(&error.to_string()))
    }

    /// Its files, to be placed in a new workspace.
    pub fn placements(&self, store: &Store) -> Result<Vec<Placement>> {
        let place = |leaf: &Leaf| {
            let path = WorkspacePath::parse(&leaf.path).map_err(unreadable)?;
            let body = Body::File(store.blobs().path(&leaf.digest));
            let mode = Mode::parse(&format!("{:04o}", leaf.mode & 0o777)).map_err(unreadable)?;
            let digest = Some(leaf.digest.clone());
            Ok(Placement { path, body, access: Access::ReadWrite, mode: Some(mode), digest })
        };
        self.files.iter().map(place).collect()
    }
}

fn unreadable(why: &str) -> Diagnostic {
    Diagnostic::new("run::checkpoint", format!("the list of a kept workspace cannot be read: {why}"))
        .help("the files in .tidemill were changed or are damaged; drop the input again")
}
