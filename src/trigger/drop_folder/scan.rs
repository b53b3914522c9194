//! What stands in the inbox now: one look at every file, following no link and opening nothing.

use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use crate::event::input::{Fingerprint, RawPath};
use crate::trigger::drop_folder::names::{self, Rule};

/// The inbox as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// The inbox itself.
    pub root: Root,
    /// What was found, in no order.
    pub found: Vec<Found>,
    /// Folders that could not be read whole: nothing is known about what lies in them.
    pub unread: Vec<RawPath>,
}

/// The inbox itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// It is a folder; device and inode tell whether it is the same one as before.
    Present {
        /// Number in its file system.
        inode: u64,
        /// The file system.
        device: u64,
    },
    /// It is not there, no folder, or may not be read: an unmounted disk, not a deletion of everything in it.
    Absent,
}

/// Something in the inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Relative to the inbox.
    pub path: RawPath,
    /// What it is.
    pub sight: Sight,
    /// Its version, as far as it could be seen.
    pub fingerprint: Fingerprint,
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// A regular file.
    File,
    /// By its name it is not for us.
    Ignored(Rule),
    /// Not a regular file: `a symbolic link`, `a FIFO`, ...
    Other(&'static str),
    /// It could not be looked at: the operating system's error number.
    Unreadable(i32),
}

/// Looks at the whole inbox.
pub fn scan(inbox: &Path) -> Scan {
    let mut scan = Scan { root: root(inbox), found: Vec::new(), unread: Vec::new() };
    if scan.root == Root::Absent {
        return scan;
    }
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let read = fs::read_dir(inbox.join(&folder)).and_then(|entries| {
            entries.into_iter().try_for_each(|entry| {
                look(&folder, &entry?, &mut scan, &mut folders);
                Ok(())
            })
        });
        match read {
            Ok(()) => {}
            // It was there a moment ago; the next scan knows.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) if folder.as_os_str().is_empty() => {
                scan.root = Root::Absent;
                return scan;
            }
            Err(error) => {
                let path = RawPath::new(folder);
                scan.unread.push(path.clone());
                scan.found.push(Found {
                    path,
                    sight: Sight::Unreadable(error.raw_os_error().unwrap_or_default()),
                    fingerprint: UNSEEN,
                });
            }
        }
    }
    scan
}

/// What a scan makes of one path: the path itself, or the folder above it that is not looked into.
///
/// `None` when nothing stands there.
pub fn look_at(inbox: &Path, path: &RawPath) -> Option<Found> {
    let mut above: Vec<&Path> = path.as_path().ancestors().skip(1).collect();
    above.pop();
    for folder in above.into_iter().rev() {
        let folder = RawPath::new(folder);
        match fs::symlink_metadata(inbox.join(folder.as_path())) {
            Ok(metadata) if metadata.is_dir() => {
                if let Some(rule) = names::ignored_folder(folder.name()) {
                    return Some(Found {
                        path: folder,
                        sight: Sight::Ignored(rule),
                        fingerprint: steady(&metadata),
                    });
                }
            }
            other => return found(folder, other),
        }
    }
    found(path.clone(), fs::symlink_metadata(inbox.join(path.as_path())))
}

fn found(path: RawPath, metadata: io::Result<Metadata>) -> Option<Found> {
    let (sight, fingerprint) = match metadata {
        Ok(metadata) => (sight(&path, &metadata), fingerprint(&metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => (Sight::Unreadable(error.raw_os_error().unwrap_or_default()), UNSEEN),
    };
    Some(Found { path, sight, fingerprint })
}

/// The version of a file.
pub fn fingerprint(metadata: &Metadata) -> Fingerprint {
    Fingerprint {
        size: metadata.len(),
        mtime_ns: metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec()),
        inode: metadata.ino(),
        device: metadata.dev(),
    }
}

/// The version of what could not be seen.
const UNSEEN: Fingerprint = Fingerprint { size: 0, mtime_ns: 0, inode: 0, device: 0 };

/// The inbox itself.
pub fn root(inbox: &Path) -> Root {
    match fs::metadata(inbox) {
        Ok(metadata) if metadata.is_dir() => Root::Present { inode: metadata.ino(), device: metadata.dev() },
        _ => Root::Absent,
    }
}

fn look(folder: &Path, entry: &DirEntry, scan: &mut Scan, folders: &mut Vec<PathBuf>) {
    let path = RawPath::new(folder.join(entry.file_name()));
    // Of the entry itself, never of what a link points to.
    let (sight, fingerprint) = match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => match names::ignored_folder(path.name()) {
            None => return folders.push(path.as_path().to_owned()),
            Some(rule) => (Sight::Ignored(rule), steady(&metadata)),
        },
        Ok(metadata) => (sight(&path, &metadata), fingerprint(&metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => (Sight::Unreadable(error.raw_os_error().unwrap_or_default()), UNSEEN),
    };
    scan.found.push(Found { path, sight, fingerprint });
}

/// An ignored folder is the same whatever happens in it.
fn steady(metadata: &Metadata) -> Fingerprint {
    Fingerprint { size: 0, mtime_ns: 0, ..fingerprint(metadata) }
}

fn sight(path: &RawPath, metadata: &Metadata) -> Sight {
    if let Some(rule) = names::ignored_file(path.name()) {
        return Sight::Ignored(rule);
    }
    let kind = metadata.file_type();
    if kind.is_file() {
        Sight::File
    } else if kind.is_symlink() {
        Sight::Other("a symbolic link")
    } else if kind.is_fifo() {
        Sight::Other("a FIFO")
    } else if kind.is_socket() {
        Sight::Other("a socket")
    } else if kind.is_dir() {
        Sight::Other("a folder")
    } else {
        Sight::Other("a device")
    }
}
