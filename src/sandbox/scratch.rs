//! Temporary files and folders that say whose they are, so that those of a killed process do not stay.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use tempfile::{Builder, NamedTempFile, TempDir};

use crate::diagnostic::Diagnostic;
use crate::owner::{Life, Owner};

/// How their names begin; the owner follows, and something random.
const PREFIX: &str = "tidemill-of_";
/// Between the parts of a name: none of an owner's holds it.
const BETWEEN: char = '_';

/// A file that goes away when it is dropped.
pub(in crate::sandbox) fn file() -> io::Result<NamedTempFile> {
    Builder::new().prefix(&prefix()?).tempfile()
}

/// A folder that goes away when it is dropped.
pub(in crate::sandbox) fn folder() -> io::Result<TempDir> {
    Builder::new().prefix(&prefix()?).tempdir()
}

fn prefix() -> io::Result<String> {
    let owner =
        Owner::this_process().map_err(|diagnostic: Diagnostic| io::Error::other(diagnostic.to_string()))?;
    Ok(format!("{PREFIX}{}{BETWEEN}", owner.to_string().replace('/', &BETWEEN.to_string())))
}

/// Removes temporary files and folders of this user's processes that have ended. Gives how many.
pub fn sweep_scratch() -> usize {
    sweep(&std::env::temp_dir())
}

fn sweep(folder: &Path) -> usize {
    let user = rustix::process::geteuid().as_raw();
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    let dead = entries.flatten().filter(|entry| {
        let owner = entry.file_name().to_str().and_then(owner_of);
        owner.is_some_and(|owner| owner.life() == Life::Dead)
            // Anybody can give a thing any name.
            && entry.metadata().is_ok_and(|metadata| metadata.uid() == user)
    });
    let removed = dead.filter(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => fs::remove_dir_all(entry.path()).is_ok(),
        _ => fs::remove_file(entry.path()).is_ok(),
    });
    removed.count()
}

fn owner_of(name: &str) -> Option<Owner> {
    let (owner, _random) = name.strip_prefix(PREFIX)?.rsplit_once(BETWEEN)?;
    Owner::parse(&owner.replace(BETWEEN, "/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_dead_left_goes_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let prefix = prefix().unwrap();
        let (before, start) = prefix.trim_end_matches(BETWEEN).rsplit_once(BETWEEN).unwrap();
        let dead = format!("{before}{BETWEEN}{}{BETWEEN}", start.parse::<u64>().unwrap() + 1);
        for name in
            [format!("{prefix}abc"), format!("{dead}abc"), "tidemill-of_x".to_owned(), "other".to_owned()]
        {
            fs::write(place.path().join(name), "x").unwrap();
        }
        fs::create_dir_all(place.path().join(format!("{dead}folder/below"))).unwrap();
        assert_eq!(sweep(place.path()), 2);
        let left = fs::read_dir(place.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert_eq!(left.filter(|name| name.starts_with(&dead)).count(), 0);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 3);
    }
}
