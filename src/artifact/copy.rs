//! Copying a file whose source is not trusted: what arrives is what was checked, or nothing.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use crate::diagnostic::{Diagnostic, Result, is_full};
use crate::event::id::{Digest, Hasher};
use crate::event::input::printable;
use crate::workflow::view::Artifact;

/// Readable by all: the outbox is for others.
const FILE_MODE: u32 = 0o644;
/// Enough to keep the disk busy, little enough to stay out of the way.
const BUFFER: usize = 256 * 1024;

/// Copies an artifact to `target`, which must not exist, and makes it durable. Fails when the bytes are not the ones
/// that were collected: they were checked, others were not.
pub(super) fn copy_checked(artifact: &Artifact, target: &Path) -> Result<()> {
    let (size, digest) = copy(artifact, target)?;
    if digest == artifact.digest && size == artifact.size {
        return Ok(());
    }
    Err(Diagnostic::new(
        "artifact::changed",
        format!("`{}` changed between its check and its publication", artifact.path),
    )
    .help("nothing was published; something else writes into the run's folder under `.tidemill/`"))
}

/// Copies an artifact to `target`, which must not exist, whatever it holds; says what that was.
pub(super) fn copy(artifact: &Artifact, target: &Path) -> Result<(u64, Digest)> {
    let source = open_regular(&artifact.file).map_err(|error| {
        let message = format!("the collected file of `{}` cannot be read: {error}", artifact.path);
        Diagnostic::new("artifact::unreadable", message)
            .help("something else removed or changed it in the run's folder under `.tidemill/`")
    })?;
    pour(source, target).map_err(|error| io_error(&error, target))
}

fn pour(mut source: File, target: &Path) -> io::Result<(u64, Digest)> {
    let mut target = create_new(target)?;
    let mut hasher = Hasher::default();
    let mut buffer = vec![0; BUFFER];
    let mut size = 0;
    loop {
        let count = source.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        hasher.update(&buffer[..count]);
        target.write_all(&buffer[..count])?;
        size += count as u64;
    }
    target.sync_all()?;
    Ok((size, hasher.finish()))
}

/// Opens a regular file, never through a link and never waiting for a pipe.
fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
}

/// Hashes a regular file.
pub(super) fn hash(path: &Path) -> io::Result<Digest> {
    let mut file = open_regular(path)?;
    let mut hasher = Hasher::default();
    let mut buffer = vec![0; BUFFER];
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok(hasher.finish());
        }
        hasher.update(&buffer[..count]);
    }
}

/// Writes a new file and makes it durable.
pub(super) fn write_new(path: &Path, bytes: &[u8]) -> Result<()> {
    let write = || -> io::Result<()> {
        let mut file = create_new(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(|error| io_error(&error, path))
}

fn create_new(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path)?;
    // The process may run with a tighter umask than the outbox's readers can live with.
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(FILE_MODE))?;
    Ok(file)
}

/// Removes a file or folder, if there is one.
pub(super) fn remove(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(io_error(&error, path)),
        Ok(metadata) => {
            let removed = if metadata.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            removed.map_err(|error| io_error(&error, path))
        }
    }
}

/// What went wrong with `path`, and what to do about it.
pub(super) fn io_error(error: &io::Error, path: &Path) -> Diagnostic {
    let shown = printable(path.as_os_str());
    let (code, help) = match error.kind() {
        _ if is_full(error) => (
            "artifact::disk_full",
            "free some space and drop the input again; the files are kept under `.tidemill/`",
        ),
        io::ErrorKind::PermissionDenied => (
            "artifact::permission",
            "let the user that runs tidemill write there, or set another `outbox` in tidemill.toml",
        ),
        io::ErrorKind::ReadOnlyFilesystem => {
            ("artifact::read_only", "set an `outbox` in tidemill.toml on a file system that can be written")
        }
        io::ErrorKind::NotFound => {
            ("artifact::missing", "check that the folder exists and is not removed while a run publishes")
        }
        _ => ("artifact::io", "check the disk and the folder's permissions"),
    };
    Diagnostic::new(code, format!("cannot write `{shown}`: {error}")).help(help)
}
