//! Files of the host that must be what they were when somebody took their hash.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::event::id::{Digest, Hasher, copy_hashed};

/// What is read, and what it must come to where that is known.
#[derive(Debug)]
pub(in crate::sandbox) struct Exact<R> {
    source: R,
    known: Option<(Digest, Hasher)>,
}

impl<R> Exact<R> {
    pub(in crate::sandbox) fn new(source: R, known: Option<&Digest>) -> Self {
        Self { source, known: known.map(|digest| (digest.clone(), Hasher::default())) }
    }

    /// Once all was read: gives the source back when what it gave is what was known of it.
    pub(in crate::sandbox) fn check(self, path: &Path) -> io::Result<R> {
        let is_other = self.known.is_some_and(|(known, hasher)| hasher.finish() != known);
        if is_other { Err(changed(path)) } else { Ok(self.source) }
    }
}

impl<R: Read> Read for Exact<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        if let Some((_, hasher)) = &mut self.known {
            hasher.update(&buffer[..count]);
        }
        Ok(count)
    }
}

/// Checks a file that was linked or copied without being read here.
pub(in crate::sandbox) fn check(path: &Path, known: Option<&Digest>) -> io::Result<()> {
    match known {
        Some(known) if copy_hashed(&mut File::open(path)?, &mut io::sink())?.0 != *known => {
            Err(changed(path))
        }
        _ => Ok(()),
    }
}

fn changed(path: &Path) -> io::Error {
    io::Error::other(format!("{} changed while it was read", path.display()))
}
