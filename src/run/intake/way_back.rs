//! The way back into the inbox leads through no link: who may write there must not choose where else files go.

use std::io;
use std::path::Path;

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, mkdirat, open, openat};
use rustix::io::Errno;

/// Opens the folder that `path`, relative to the inbox, lies in. Folders that are missing are made.
///
/// `NotADirectory` when a link or a file stands where a folder would be.
pub(super) fn folder_of(inbox: &Path, path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // The inbox itself may be a link: that is its owner's choice.
    let mut folder = open(inbox, flags, Mode::empty())?;
    for name in path.parent().into_iter().flatten() {
        let flags = flags | OFlags::NOFOLLOW;
        folder = match openat(&folder, name, flags, Mode::empty()) {
            Err(Errno::NOENT) => {
                mkdirat(&folder, name, Mode::RWXU | Mode::RWXG | Mode::RWXO)?;
                openat(&folder, name, flags, Mode::empty())?
            }
            opened => opened?,
        };
    }
    Ok(folder)
}
