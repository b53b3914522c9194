//! Moving files so that nothing is lost or overwritten, also from one file system to another.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};
use rustix::io::Errno;
use tempfile::{Builder, NamedTempFile};

use crate::event::id::{Digest, Hasher};
use crate::event::input::Fingerprint;
use crate::run::intake::names;
use crate::trigger::drop_folder::scan::fingerprint;

/// Opens a regular file for reading, following no link and waiting for nothing.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("it is no regular file any more"))
    }
}

/// Moves a file to a name that is free, making its folder.
///
/// `AlreadyExists` when it is not free; then nothing has happened.
pub(super) fn relocate(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(|error| in_the_way(folder, error))?;
    }
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(Errno::XDEV) => copy_over(from, to),
        // Some file systems cannot rename without replacing; a link never replaces.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            fs::hard_link(from, to)?;
            fs::remove_file(from)
        }
        Err(error) => Err(error.into()),
    }
}

/// A file where a folder would be is no name that is taken: another name would not help.
fn in_the_way(folder: &Path, error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::AlreadyExists => {
            let words = format!("{} is not a folder", folder.display());
            io::Error::new(io::ErrorKind::NotADirectory, words)
        }
        _ => error,
    }
}

/// The long way round: copy, sync, name, and only then remove.
fn copy_over(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = open(from)?;
    let before = fingerprint(&source.metadata()?);
    let folder = to.parent().unwrap_or(Path::new("."));
    let mut copy = half(folder, &format!(".taking-{}", Digest::of(from.as_os_str().as_bytes()).short()))?;
    io::copy(&mut source, copy.as_file_mut())?;
    copy.as_file().set_permissions(source.metadata()?.permissions())?;
    copy.as_file().sync_all()?;
    copy.persist_noclobber(to).map_err(|error| error.error)?;
    File::open(folder)?.sync_all()?;
    if fs::symlink_metadata(from).is_ok_and(|now| fingerprint(&now) == before) {
        return fs::remove_file(from);
    }
    fs::remove_file(to)?;
    Err(io::Error::other("it changed while it was copied"))
}

/// A file that goes away unless it is finished. Its name is the same each time, so that what a process left that was
/// killed here is replaced by the next try.
pub(super) fn half(folder: &Path, name: &str) -> io::Result<NamedTempFile> {
    match fs::remove_file(folder.join(name)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Builder::new().prefix(name).rand_bytes(0).tempfile_in(folder),
    }
}

/// Moves a file back to its place in the inbox; when that was taken meanwhile, to a name marked with `mark` beside it.
pub(super) fn put_back(from: &Path, home: &Path, mark: &str) -> io::Result<()> {
    for attempt in 0..names::ATTEMPTS {
        match relocate(from, &names::numbered(home, mark, attempt)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            done => return done,
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Reads a file to its end; gives its version and hash, or `None` when it changed meanwhile.
pub(super) fn read_still(path: &Path) -> io::Result<Option<(Fingerprint, Digest)>> {
    let mut file = open(path)?;
    let before = fingerprint(&file.metadata()?);
    let mut hasher = Hasher::default();
    let read = io::copy(&mut file, &mut hasher)?;
    let after = fingerprint(&file.metadata()?);
    Ok((before == after && read == after.size).then(|| (after, hasher.finish())))
}

/// Whether that version of a file stands there.
pub(super) fn stands(path: &Path, version: Fingerprint) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file() && fingerprint(&metadata) == version)
}
