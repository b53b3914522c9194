//! Files of the workspace, as the commands' user may read and write them; links are never followed.

use std::fs::{self, File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use crate::message::{Failed, Kind, Obstacle, Read, Write};
use crate::sys::{self, Opening, errno};

/// Where commands work, and what all paths are relative to.
pub const WORKSPACE: &str = "/workspace";
/// Bytes read at once.
const PIECE: usize = 128 * 1024;
/// Folders made on the way to a file.
const FOLDER_MODE: u32 = 0o755;

/// What to do about a folder that is missing on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Absent {
    Fail,
    Make,
}

/// What stands at an opened place.
pub fn kind_of(metadata: &fs::Metadata) -> Kind {
    let kind = metadata.file_type();
    if kind.is_file() {
        Kind::File
    } else if kind.is_dir() {
        Kind::Folder
    } else if kind.is_symlink() {
        Kind::Link
    } else {
        Kind::Other
    }
}

/// The obstacle an error is.
pub fn failed(error: &io::Error) -> Failed {
    let obstacle = match error.raw_os_error() {
        Some(errno::ENOENT | errno::ENOTDIR) => Obstacle::Missing,
        Some(errno::ENOSPC | errno::EDQUOT) => Obstacle::Full,
        _ => Obstacle::Refused,
    };
    let words = match error.raw_os_error() {
        Some(errno::ENOSPC | errno::EDQUOT) => "the workspace is full".to_owned(),
        Some(errno::EACCES) => "permission denied".to_owned(),
        Some(errno::ELOOP) => "is a link, and links are not followed".to_owned(),
        _ => error.to_string(),
    };
    Failed { obstacle, reason: words }
}

fn refused(reason: impl Into<String>) -> Failed {
    Failed { obstacle: Obstacle::Refused, reason: reason.into() }
}

fn look(folder: &OwnedFd, name: &[u8]) -> Result<(File, Kind), Failed> {
    let file = File::from(sys::open_in(folder.as_fd(), name, Opening::Look).map_err(|error| failed(&error))?);
    let kind = kind_of(&file.metadata().map_err(|error| failed(&error))?);
    Ok((file, kind))
}

/// The folder a path's last name is in, and that name.
fn parent(path: &[u8], absent: Absent) -> Result<(OwnedFd, &[u8]), Failed> {
    let root = File::open(WORKSPACE).map_err(|error| failed(&error))?;
    let mut folder = OwnedFd::from(root);
    let mut names: Vec<&[u8]> = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).collect();
    if names.iter().any(|name| matches!(*name, b"." | b"..")) {
        return Err(refused("leads out of the workspace"));
    }
    let last = names.pop().ok_or_else(|| refused("is the workspace itself"))?;
    let mut so_far = Vec::new();
    for name in names {
        so_far.extend_from_slice(name);
        if absent == Absent::Make {
            match sys::make_folder(folder.as_fd(), name, FOLDER_MODE) {
                // Where it exists, that it cannot be made does not matter.
                Err(error) if look(&folder, name).is_err() => return Err(failed(&error)),
                Ok(()) | Err(_) => {}
            }
        }
        let (next, kind) = look(&folder, name)?;
        match kind {
            Kind::Folder => folder = next.into(),
            Kind::Link => {
                let link = String::from_utf8_lossy(&so_far);
                return Err(refused(format!("lies behind the link `{link}`, and links are not followed")));
            }
            Kind::File | Kind::Other => {
                let obstacle = if absent == Absent::Make { Obstacle::Refused } else { Obstacle::Missing };
                return Err(Failed { obstacle, reason: "lies below a file".into() });
            }
        }
        so_far.push(b'/');
    }
    Ok((folder, last))
}

/// A folder of the workspace, opened for listing.
pub fn open_folder(path: &[u8]) -> Result<OwnedFd, Failed> {
    if path.iter().all(|byte| *byte == b'/') {
        return File::open(WORKSPACE).map(OwnedFd::from).map_err(|error| failed(&error));
    }
    let (folder, name) = parent(path, Absent::Fail)?;
    match look(&folder, name)?.1 {
        Kind::Folder => {}
        Kind::Link => return Err(refused("is a link, and links are not followed")),
        Kind::File | Kind::Other => return Err(refused("is not a folder")),
    }
    sys::open_in(folder.as_fd(), name, Opening::Read).map_err(|error| failed(&error))
}

/// Opens a file of this user's that it has taken its own right to read away from.
fn with_right_to_read(seen: &File, open: impl FnOnce() -> io::Result<File>) -> io::Result<File> {
    const READ: u32 = 0o400;
    // The very file that was looked at, whatever stands at its path by now.
    let itself = format!("/proc/self/fd/{}", seen.as_raw_fd());
    let before = seen.metadata()?.permissions();
    fs::set_permissions(&itself, Permissions::from_mode(before.mode() | READ))?;
    let opened = open();
    fs::set_permissions(&itself, before)?;
    opened
}

/// A file being read.
pub struct Reading {
    file: File,
    left: u64,
    read: u64,
}

impl Reading {
    /// Opens a regular file of at most the limit's bytes.
    pub fn open(asked: &Read) -> Result<Self, Failed> {
        let (folder, name) = parent(&asked.path, Absent::Fail)?;
        // Looked at before it is opened: opening a device or a pipe can have effects.
        let (seen, kind) = look(&folder, name)?;
        match kind {
            Kind::File => {}
            Kind::Folder => return Err(refused("is a folder")),
            Kind::Link => return Err(refused("is a link, and links are not followed")),
            Kind::Other => return Err(refused("is not a regular file")),
        }
        let open = || sys::open_in(folder.as_fd(), name, Opening::Read).map(File::from);
        let file = match open() {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => with_right_to_read(&seen, open),
            other => other,
        };
        let file = file.map_err(|error| failed(&error))?;
        let metadata = file.metadata().map_err(|error| failed(&error))?;
        if kind_of(&metadata) != Kind::File {
            return Err(refused("changed while it was opened"));
        }
        if metadata.size() > asked.limit {
            return Err(Failed { obstacle: Obstacle::TooLarge, reason: metadata.size().to_string() });
        }
        // One byte more than may come: a file that grows is noticed by whoever asked.
        Ok(Self { file, left: asked.limit.saturating_add(1), read: 0 })
    }

    /// The next bytes; nothing at the end.
    pub fn next(&mut self) -> Result<Option<Vec<u8>>, Failed> {
        let mut piece = vec![0; PIECE.min(usize::try_from(self.left).unwrap_or(PIECE))];
        let length = self.file.read(&mut piece).map_err(|error| failed(&error))?;
        if length == 0 {
            return Ok(None);
        }
        piece.truncate(length);
        self.left -= length as u64;
        self.read += length as u64;
        Ok(Some(piece))
    }

    /// Bytes read so far.
    pub fn count(&self) -> u64 {
        self.read
    }
}

/// A file being written: under another name first, so that nobody sees half of it.
pub struct Writing {
    folder: OwnedFd,
    name: Vec<u8>,
    staged: Vec<u8>,
    file: File,
    written: u64,
    failed: Option<Failed>,
}

impl Writing {
    /// Begins; `id` tells apart what is written at the same time.
    pub fn begin(asked: &Write, id: u32) -> Result<Self, Failed> {
        let (folder, name) = parent(&asked.path, Absent::Make)?;
        match look(&folder, name) {
            Ok((_, Kind::Folder)) => return Err(refused("is a folder")),
            // A link is replaced, not followed; what is missing is made.
            Ok(_) | Err(Failed { obstacle: Obstacle::Missing, .. }) => {}
            Err(other) => return Err(other),
        }
        let staged = format!(".staged-{}-{id}", std::process::id()).into_bytes();
        // What a write left that was given up.
        let _ = sys::remove_in(folder.as_fd(), &staged);
        let opening = Opening::New(asked.mode & 0o777);
        let file = sys::open_in(folder.as_fd(), &staged, opening).map_err(|error| failed(&error))?;
        Ok(Self { folder, name: name.to_vec(), staged, file: file.into(), written: 0, failed: None })
    }

    /// Takes the next bytes. What fails is told at the end.
    pub fn take(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            match self.file.write_all(bytes) {
                Ok(()) => self.written += bytes.len() as u64,
                Err(error) => self.failed = Some(failed(&error)),
            }
        }
    }

    /// Puts the whole file in its place; gives its bytes.
    pub fn commit(mut self) -> Result<u64, Failed> {
        if let Some(failed) = self.failed.take() {
            return Err(failed);
        }
        let moved = sys::rename_in(self.folder.as_fd(), &self.staged, &self.name);
        moved.map_err(|error| failed(&error))?;
        Ok(self.written)
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        // After a commit there is nothing under this name any more.
        let _ = sys::remove_in(self.folder.as_fd(), &self.staged);
    }
}
