//! What stands in the inbox now: one look at every file of a scope, following no link and opening nothing.

use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use crate::event::input::{Fingerprint, RawPath};
use crate::trigger::drop_folder::looked::Looked;
use crate::trigger::drop_folder::names::{self, Rule};
use crate::trigger::drop_folder::scope::{Depth, Scope};

/// The inbox, or parts of it, as found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// What was to be looked at.
    pub scope: Scope,
    /// The inbox itself.
    pub root: Root,
    /// What was found, in no order.
    pub found: Vec<Found>,
    /// What was looked at: of what lies elsewhere nothing is known.
    pub looked: Looked,
}

/// The inbox itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// It is a folder; that tells whether it is the same one as before.
    Present(Id),
    /// It is not there, no folder, or may not be read: an unmounted disk, not a deletion of everything in it.
    Absent,
}

/// What tells one folder from another of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Id {
    /// The file system.
    pub device: u64,
    /// Number in its file system.
    pub inode: u64,
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
    /// Not a regular file: `a FIFO`, `a folder`, ...
    Other(&'static str),
    /// A symbolic link that is not followed, and why it cannot be.
    Link(&'static str),
    /// A symbolic link to a regular file where links may lead; the version is that of the file.
    Linked,
    /// It could not be looked at: the operating system's error number.
    Unreadable(i32),
}

/// Who comes along on a scan. Folders are named relative to the inbox.
pub trait Visit {
    /// A folder's entries are about to be read; `above` is the folder it lies in, nothing for the inbox.
    fn enter(&mut self, folder: &Path, id: Id, above: Option<Id>);

    /// Whether a folder needs no look because its changes are heard of.
    fn trusts(&self, folder: &Path, id: Id) -> bool;
}

/// Nobody: nothing is watched and nothing left out.
#[derive(Debug, Clone, Copy)]
pub struct Alone;

impl Visit for Alone {
    fn enter(&mut self, _folder: &Path, _id: Id, _above: Option<Id>) {}

    fn trusts(&self, _folder: &Path, _id: Id) -> bool {
        false
    }
}

/// A folder on the way.
struct Step {
    folder: PathBuf,
    id: Id,
    above: Option<Id>,
    depth: Depth,
}

/// Looks at what is in scope.
pub fn scan(inbox: &Path, scope: Scope, visit: &mut dyn Visit) -> Scan {
    let root = root(inbox);
    let mut scan = Scan { scope, root, found: Vec::new(), looked: Looked::default() };
    let Root::Present(id) = root else {
        return scan;
    };
    for (folder, depth) in scan.scope.folders() {
        let mut steps = vec![reach(inbox, id, &folder, depth)];
        while let Some(step) = steps.pop() {
            if !scan.looked.has_read(&step.folder, step.depth) {
                read(inbox, &step, &mut scan, &mut steps, visit);
            }
        }
    }
    // A disk that goes while it is read must not look like a deletion.
    if self::root(inbox) != root {
        scan.root = Root::Absent;
    }
    if scan.root == Root::Absent {
        scan.found.clear();
        scan.looked = Looked::default();
    }
    scan
}

/// The way down to a folder. When it is not there any more, or not looked into, the last folder before it will show
/// that.
fn reach(inbox: &Path, root: Id, folder: &Path, depth: Depth) -> Step {
    let mut step = Step { folder: PathBuf::new(), id: root, above: None, depth };
    for name in folder {
        let next = step.folder.join(name);
        match fs::symlink_metadata(inbox.join(&next)) {
            Ok(metadata) if metadata.is_dir() && names::ignored_folder(name).is_none() => {
                step = Step { folder: next, id: id(&metadata), above: Some(step.id), depth };
            }
            _ => return Step { depth: Depth::Entries, ..step },
        }
    }
    step
}

fn read(inbox: &Path, step: &Step, scan: &mut Scan, steps: &mut Vec<Step>, visit: &mut dyn Visit) {
    // Watched first, read second: what happens in between is seen by one or the other.
    visit.enter(&step.folder, step.id, step.above);
    let read = fs::read_dir(inbox.join(&step.folder)).and_then(|entries| {
        entries.into_iter().try_for_each(|entry| {
            look(step, &entry?, scan, steps, visit);
            Ok(())
        })
    });
    match read {
        Ok(()) => scan.looked.read(&step.folder, step.depth),
        // It was there a moment ago; the folder above shows that it is gone.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(_) if step.above.is_none() => scan.root = Root::Absent,
        Err(error) => {
            scan.looked.leave(&step.folder);
            scan.found.push(Found {
                path: RawPath::new(step.folder.as_path()),
                sight: Sight::Unreadable(error.raw_os_error().unwrap_or_default()),
                fingerprint: UNSEEN,
            });
        }
    }
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
        Ok(metadata) => match names::ignored_folder(path.name()) {
            Some(rule) if metadata.is_dir() => (Sight::Ignored(rule), steady(&metadata)),
            _ => (sight(&path, &metadata), fingerprint(&metadata)),
        },
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
        Ok(metadata) if metadata.is_dir() => Root::Present(id(&metadata)),
        _ => Root::Absent,
    }
}

fn id(metadata: &Metadata) -> Id {
    Id { device: metadata.dev(), inode: metadata.ino() }
}

fn look(step: &Step, entry: &DirEntry, scan: &mut Scan, steps: &mut Vec<Step>, visit: &dyn Visit) {
    let path = step.folder.join(entry.file_name());
    // Of the entry itself, never of what a link points to.
    let metadata = entry.metadata();
    if let Ok(metadata) = &metadata
        && metadata.is_dir()
        && names::ignored_folder(&entry.file_name()).is_none()
    {
        let id = id(metadata);
        if step.depth == Depth::Entries && visit.trusts(&path, id) {
            scan.looked.leave(&path);
        } else {
            steps.push(Step { folder: path, id, above: Some(step.id), depth: Depth::Subtree });
        }
        return;
    }
    scan.found.extend(found(RawPath::new(path), metadata));
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
        Sight::Link("was not followed")
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
