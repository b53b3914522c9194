//! The folder of ours: reached part by part from an open folder, so that no link in it can lead elsewhere.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, mkdirat, openat, unlinkat};
use rustix::io::Errno;

use crate::event::id::{Digest, copy_hashed};

/// An open folder.
#[derive(Debug)]
pub(super) struct Target {
    root: OwnedFd,
}

/// Nobody else's business until it is published.
const FILE: Mode = Mode::from_raw_mode(0o600);
const FOLDER: Mode = Mode::from_raw_mode(0o700);
const OPEN_FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const NEW_FILE: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Target {
    /// Opens the folder. A link to it is followed this once: the caller named it.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { root: openat(CWD, folder, flags, Mode::empty())? })
    }

    /// Makes a folder with those above it. The inner error is the archive's fault.
    pub(super) fn folder(&self, name: &str) -> io::Result<Result<(), String>> {
        Ok(self.reach(name)?.map(drop))
    }

    /// Writes a new file of exactly `size` bytes and hashes it on the way; a file that cannot be whole is not left.
    pub(super) fn file(
        &self,
        name: &str,
        size: u64,
        content: impl Read,
    ) -> io::Result<Result<Digest, String>> {
        let (above, last) = name.rsplit_once('/').unwrap_or(("", name));
        let folder = match self.reach(above)? {
            Ok(folder) => folder,
            Err(why) => return Ok(Err(why)),
        };
        let file = match openat(&folder, last, NEW_FILE, FILE) {
            Ok(file) => file,
            Err(Errno::EXIST | Errno::LOOP) => return Ok(Err("stands there already".to_owned())),
            Err(Errno::NAMETOOLONG) => return Ok(Err("has too long a name".to_owned())),
            Err(error) => return Err(error.into()),
        };
        let written = pour(content, size, File::from(file));
        match written {
            Ok(Ok(digest)) => Ok(Ok(digest)),
            broken => {
                unlinkat(&folder, last, AtFlags::empty())?;
                broken
            }
        }
    }

    /// The open folder `name`, made with those above it where they are missing.
    fn reach(&self, name: &str) -> io::Result<Result<OwnedFd, String>> {
        let mut folder = self.root.try_clone()?;
        for part in name.split('/').filter(|part| !part.is_empty()) {
            match mkdirat(&folder, part, FOLDER) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(Errno::NAMETOOLONG) => return Ok(Err("has too long a name".to_owned())),
                Err(error) => return Err(error.into()),
            }
            folder = match openat(&folder, part, OPEN_FOLDER, Mode::empty()) {
                Ok(next) => next,
                Err(Errno::NOTDIR | Errno::LOOP) => {
                    return Ok(Err("lies under what is no folder".to_owned()));
                }
                Err(error) => return Err(error.into()),
            };
        }
        Ok(Ok(folder))
    }
}

/// An error of the archive's, told apart from one of our disk.
struct Source<R>(R, Option<io::Error>);

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).or_else(|error| {
            // What came before it is dropped with the file.
            self.1 = Some(error);
            Ok(0)
        })
    }
}

fn pour(content: impl Read, size: u64, mut to: impl Write) -> io::Result<Result<Digest, String>> {
    let mut from = Source(content.take(size), None);
    let (digest, written) = copy_hashed(&mut from, &mut to)?;
    Ok(match from.1 {
        Some(error) => Err(format!("cannot be read to its end: {error}")),
        None if written < size => Err("ends too early".to_owned()),
        None => Ok(digest),
    })
}
