//! Moving files so that nothing is lost or overwritten, also from one file system to another.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, RenameFlags, accessat, ioctl_ficlone, renameat_with};
use rustix::io::Errno;
use tempfile::{Builder, NamedTempFile};

use crate::event::id::{Digest, Hasher};
use crate::event::input::Fingerprint;
use crate::run::intake::{names, way_back};
use crate::trigger::drop_folder::links::open;
use crate::trigger::drop_folder::scan::fingerprint;

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
    let source = open(from)?;
    let before = fingerprint(&source.metadata()?);
    copy(source, to, before)?;
    if fs::symlink_metadata(from).is_ok_and(|now| fingerprint(&now) == before) {
        // Two files where one was would be two inputs.
        return fs::remove_file(from).or_else(|error| fs::remove_file(to).and(Err(error)));
    }
    fs::remove_file(to)?;
    Err(io::Error::other("it changed while it was copied"))
}

/// Copies an open file to a name that is free, making its folder; what stands there is safe on the disk. Where the file
/// system can, the copy shares its blocks with the original.
///
/// `Interrupted` when it is not that version, before or after; then nothing stands there.
pub(super) fn copy(mut source: File, to: &Path, version: Fingerprint) -> io::Result<()> {
    let changed = || io::Error::new(io::ErrorKind::Interrupted, "it changed while it was copied");
    if fingerprint(&source.metadata()?) != version {
        return Err(changed());
    }
    let folder = to.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|error| in_the_way(folder, error))?;
    let mut copy = half(folder, &format!(".taking-{}", Digest::of(to.as_os_str().as_bytes()).short()))?;
    if ioctl_ficlone(copy.as_file(), &source).is_err() {
        io::copy(&mut source, copy.as_file_mut())?;
    }
    if fingerprint(&source.metadata()?) != version {
        return Err(changed());
    }
    copy.as_file().set_permissions(source.metadata()?.permissions())?;
    copy.as_file().sync_all()?;
    copy.persist_noclobber(to).map_err(|error| error.error)?;
    File::open(folder)?.sync_all()
}

/// Whether nothing can leave the folder that a path lies in.
pub(super) fn is_read_only(path: &Path) -> bool {
    let folder = path.parent().unwrap_or(Path::new("."));
    let refused = accessat(CWD, folder, Access::WRITE_OK, AtFlags::EACCESS);
    matches!(refused, Err(Errno::ACCESS | Errno::ROFS | Errno::PERM))
}

/// A file that goes away unless it is finished. Its name is the same each time, so that what a process left that was
/// killed here is replaced by the next try.
pub(super) fn half(folder: &Path, name: &str) -> io::Result<NamedTempFile> {
    match fs::remove_file(folder.join(name)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Builder::new().prefix(name).rand_bytes(0).tempfile_in(folder),
    }
}

/// Moves a file back to its `path` in the inbox; when that was taken meanwhile, to a name marked with `mark` beside it.
pub(super) fn put_back(from: &Path, inbox: &Path, path: &Path, mark: &str) -> io::Result<()> {
    let folder = way_back::folder_of(inbox, path)?;
    // By the folder that was opened, whatever stands at its path now.
    let opened = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string());
    let home = opened.join(path.file_name().unwrap_or_default());
    for attempt in 0..names::ATTEMPTS {
        match relocate(from, &names::numbered(&home, mark, attempt)) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_cannot_be_taken_away_no_copy_stays() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("version");
        // On another file system, and not to be removed by anyone.
        assert!(relocate(Path::new("/proc/version"), &to).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_goes_back_through_no_link() {
        let project = tempfile::tempdir().unwrap();
        let at = |path: &str| project.path().join(path);
        for folder in ["inbox", "outside"] {
            fs::create_dir(at(folder)).unwrap();
        }
        std::os::unix::fs::symlink(at("outside"), at("inbox/link")).unwrap();
        let back = |path: &str| {
            fs::write(at("claimed"), "abc").unwrap();
            put_back(&at("claimed"), &at("inbox"), Path::new(path), "again-1")
        };
        for path in ["link/x.csv", "link/deep/x.csv"] {
            assert_eq!(back(path).unwrap_err().kind(), io::ErrorKind::NotADirectory, "{path}");
        }
        assert_eq!((fs::read_dir(at("outside")).unwrap().count(), at("claimed").exists()), (0, true));
        for (path, stands) in
            [("a/b/x.csv", "a/b/x.csv"), ("a/b/x.csv", "a/b/x-again-1.csv"), ("x.csv", "x.csv")]
        {
            back(path).unwrap();
            assert_eq!(fs::read(at("inbox").join(stands)).unwrap(), b"abc");
        }
    }
}
