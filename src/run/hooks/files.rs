//! What a request brought, as the run's own inputs: on the disk before the run is.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use bytes::Bytes;

use crate::diagnostic::{Diagnostic, Result, is_full};
use crate::event::id::Digest;
use crate::event::input::{InputFile, RawPath};
use crate::run::folder::{DISK_FULL, RunFolder};

/// Keeps the files in the run's folder.
pub(super) async fn keep(files: Vec<(RawPath, Bytes)>, folder: &RunFolder) -> Result<Vec<InputFile>> {
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let folder = folder.clone();
    let keeping = tokio::task::spawn_blocking(move || {
        write(&files, &folder).map_err(|error| {
            let code = if is_full(&error) { DISK_FULL } else { "run::folder" };
            Diagnostic::new(code, "what a request brought cannot be kept")
                .cause(error)
                .help("`.tidemill` must be writable for this user, on a disk with room")
        })
    });
    keeping.await.map_err(|error| Diagnostic::new("run::folder", error.to_string()))?
}

fn write(files: &[(RawPath, Bytes)], folder: &RunFolder) -> io::Result<Vec<InputFile>> {
    let mut inputs = Vec::new();
    for (index, (path, bytes)) in files.iter().enumerate() {
        let target = folder.input(index);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        let mut file = File::create(&target)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        inputs.push(InputFile { path: path.clone(), size: bytes.len() as u64, digest: Digest::of(bytes) });
    }
    // A file is there after a power cut when the folders above it say so: `input`, the run's, and `runs`.
    let folders = folder.input(0);
    for above in folders.ancestors().skip(1).take(3) {
        sync(above)?;
    }
    Ok(inputs)
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
