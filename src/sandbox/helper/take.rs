//! A file out of the workspace, hashed while it is written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::event::id::{Digest, Hasher};
use crate::sandbox::SandboxError;
use crate::sandbox::helper::client::Client;
use crate::sandbox::helper::files::{Piece, kept_nowhere};
use crate::workflow::path::WorkspacePath;
use crate::workflow::view::Artifact;

/// A host file being written.
struct Taking {
    target: PathBuf,
    file: Option<File>,
    hasher: Hasher,
    size: u64,
}

impl Client {
    /// Takes a regular file of at most `limit` bytes out into the host folder `into`, under its own relative path.
    pub async fn take(
        &self,
        path: &WorkspacePath,
        limit: u64,
        into: &Path,
    ) -> Result<Artifact, SandboxError> {
        let file = into.join(path.as_str());
        let mut taking = Taking { target: file.clone(), file: None, hasher: Hasher::default(), size: 0 };
        self.read(path, limit, |piece| taking.take(piece)).await?;
        let (digest, size) = taking.finish().map_err(|error| kept_nowhere(path, &error))?;
        Ok(Artifact { path: path.clone(), file, size, digest })
    }
}

impl Taking {
    fn take(&mut self, piece: Piece) -> io::Result<()> {
        match piece {
            Piece::Anew => {
                // What a broken stream left; the file itself is made when its first byte is here.
                if self.file.take().is_some() {
                    fs::remove_file(&self.target)?;
                }
                (self.hasher, self.size) = (Hasher::default(), 0);
                Ok(())
            }
            Piece::Next(bytes) => {
                self.hasher.update(&bytes);
                self.size += bytes.len() as u64;
                let written = self.open().and_then(|file| file.write_all(&bytes));
                if written.is_err() {
                    // A part of it is of no use, and may be what fills the disk.
                    let _ = fs::remove_file(&self.target);
                }
                written
            }
        }
    }

    /// The folder is ours, so nothing can stand there before.
    fn open(&mut self) -> io::Result<&mut File> {
        if self.file.is_none() {
            if let Some(folder) = self.target.parent() {
                fs::create_dir_all(folder)?;
            }
            self.file = Some(OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.target)?);
        }
        self.file.as_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn finish(mut self) -> io::Result<(Digest, u64)> {
        self.open()?;
        Ok((self.hasher.finish(), self.size))
    }
}
