//! Taking one file out of the inbox, and bringing it back.

use std::io;
use std::path::PathBuf;

use crate::event::id::Digest;
use crate::event::input::{Fingerprint, RawPath};
use crate::run::intake::place;
use crate::trigger::drop_folder::judge::blocked;
use crate::trigger::drop_folder::links::{End, open};

/// A file that is about to be taken.
#[derive(Debug, Clone)]
pub(super) struct Carry {
    /// The inbox.
    pub(super) inbox: PathBuf,
    /// Where it stands in there.
    pub(super) path: RawPath,
    /// Where it is taken.
    pub(super) claimed: PathBuf,
    /// The version that was quiet.
    pub(super) version: Fingerprint,
    /// How it is taken.
    pub(super) way: Way,
    /// Where it ends, when it is a link.
    pub(super) end: Option<End>,
}

/// How a file is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// It leaves the inbox.
    Move,
    /// It stays there, and a copy is taken.
    Copy,
}

/// What became of a file that was about to be taken.
#[derive(Debug)]
pub(super) enum Taking {
    Read(Fingerprint, Digest),
    Changed(String),
    Blocked(String),
    Gone,
    /// Another file of its parcel could not be taken.
    Left,
}

/// Takes files that are taken together, until one of them cannot be.
pub(super) fn carry_all(files: &[Carry]) -> Vec<Taking> {
    let mut stopped = false;
    let carried = files.iter().map(|file| {
        if stopped {
            return Taking::Left;
        }
        let taking = carry(file);
        stopped = !matches!(taking, Taking::Read(..));
        taking
    });
    carried.collect()
}

/// Moves a file out of the inbox and reads it there, where nobody new can reach it; or makes a copy and reads that.
fn carry(file: &Carry) -> Taking {
    let Carry { inbox, path, claimed, version, way, end } = file;
    let home = &inbox.join(path.as_path());
    if end.is_none() && !place::stands(home, *version) {
        return match home.symlink_metadata() {
            Ok(_) => Taking::Changed("it changed while it was being claimed".to_owned()),
            Err(_) => Taking::Gone,
        };
    }
    let taken = match way {
        Way::Move => place::relocate(home, claimed),
        Way::Copy => {
            let original = end.as_ref().map_or_else(|| open(home), End::open);
            original.and_then(|original| place::copy(original, claimed, *version))
        }
    };
    if let Err(error) = taken {
        return match error.kind() {
            io::ErrorKind::NotFound => Taking::Gone,
            io::ErrorKind::Interrupted => Taking::Changed(error.to_string()),
            _ => Taking::Blocked(why(&error)),
        };
    }
    match place::read_still(claimed) {
        // The version of a copy is that of the original, which was compared while it was made.
        Ok(Some((_, digest))) if *way != Way::Move => Taking::Read(*version, digest),
        // On another file system it is a copy, which was compared as well.
        Ok(Some((now, digest))) if now == *version || now.device != version.device => {
            Taking::Read(now, digest)
        }
        Ok(_) => Taking::Changed("its writer went on while it was being claimed".to_owned()),
        Err(error) => Taking::Blocked(why(&error)),
    }
}

/// Brings a file back that was taken, if it was; what was only copied is still there.
pub(super) fn bring_back(file: &Carry, mark: &str) -> io::Result<()> {
    if file.claimed.symlink_metadata().is_ok() {
        match file.way {
            Way::Move => place::put_back(&file.claimed, &file.inbox, file.path.as_path(), mark)?,
            Way::Copy => std::fs::remove_file(&file.claimed)?,
        }
    }
    if let Some(folder) = file.claimed.parent() {
        // Empty, or never made.
        let _ = std::fs::remove_dir(folder);
    }
    Ok(())
}

/// An error of the system for people.
pub(super) fn why(error: &io::Error) -> String {
    error.raw_os_error().map_or_else(|| error.to_string(), blocked)
}
