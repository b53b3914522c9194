//! What is in a folder of the workspace, step by step, so that a million files hold nothing up.

use std::ffi::OsStr;
use std::fs::{self, ReadDir};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::init::files::{failed, kind_of, open_folder};
use crate::message::{Entry, Failed, Kind, List, Obstacle};

/// A folder that is open.
struct Open {
    /// Its path from where the list began.
    path: PathBuf,
    entries: ReadDir,
    /// Keeps what `entries` reads through.
    _folder: OwnedFd,
}

/// A list being made.
pub struct Listing {
    root: Vec<u8>,
    depth: u32,
    left: u64,
    told: u64,
    open: Vec<Open>,
}

impl Listing {
    /// Opens the folder.
    pub fn open(asked: &List) -> Result<Self, Failed> {
        let mut listing = Self {
            root: asked.path.clone(),
            depth: asked.depth,
            left: asked.most,
            told: 0,
            open: Vec::new(),
        };
        listing.enter(PathBuf::new())?;
        Ok(listing)
    }

    fn enter(&mut self, path: PathBuf) -> Result<(), Failed> {
        let full = Path::new(OsStr::from_bytes(&self.root)).join(&path);
        let folder = open_folder(full.as_os_str().as_bytes())?;
        let entries =
            fs::read_dir(format!("/proc/self/fd/{}", folder.as_raw_fd())).map_err(|error| failed(&error))?;
        self.open.push(Open { path, entries, _folder: folder });
        Ok(())
    }

    /// The next entry; nothing at the end.
    pub fn next(&mut self) -> Result<Option<Entry>, Failed> {
        while let Some(open) = self.open.last_mut() {
            let Some(entry) = open.entries.next() else {
                self.open.pop();
                continue;
            };
            let entry = entry.map_err(|error| failed(&error))?;
            let path = open.path.join(entry.file_name());
            // What went away meanwhile is not there.
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            if self.left == 0 {
                let reason = format!("holds more than {} entries", self.told);
                return Err(Failed { obstacle: Obstacle::Refused, reason });
            }
            (self.left, self.told) = (self.left - 1, self.told + 1);
            let kind = kind_of(&metadata);
            if kind == Kind::Folder && self.open.len() < self.depth as usize {
                // One that may not be read is told, and stays closed.
                let _ = self.enter(path.clone());
            }
            let changed = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            return Ok(Some(Entry {
                kind,
                size: metadata.size(),
                mode: metadata.mode() & 0o7777,
                changed: changed.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)),
                path: path.into_os_string().into_vec(),
            }));
        }
        Ok(None)
    }

    /// Entries told so far.
    pub fn count(&self) -> u64 {
        self.told
    }
}
