//! Files that were taken out of a sandbox before the process died, when they are still what they were.

use std::fs::File;
use std::path::Path;

use crate::event::id::{Digest, copy_hashed};
use crate::workflow::path::WorkspacePath;
use crate::workflow::view::Artifact;

/// The files of `collected` (path, bytes, hash) as they stand in `folder`; nothing when one is missing or another.
/// Blocking.
pub(super) fn taken_before(folder: &Path, collected: &[(String, u64, Digest)]) -> Option<Vec<Artifact>> {
    let stands = |(path, size, digest): &(String, u64, Digest)| {
        let path = WorkspacePath::parse(path).ok()?;
        let file = folder.join(path.as_str());
        let (found, length) = copy_hashed(&mut File::open(&file).ok()?, &mut std::io::sink()).ok()?;
        let same = found == *digest && length == *size;
        same.then_some(Artifact { path, file, size: length, digest: found })
    };
    collected.iter().map(stands).collect()
}
