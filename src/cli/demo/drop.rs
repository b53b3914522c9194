//! Drops the readings as a careful program does: under a name nobody takes, then renamed in one step.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::diagnostic::{Diagnostic, Result};

/// Where the readings go, relative to the inbox.
pub const PATH: &str = "energy/building_energy.csv";

/// Writes `text` to [`PATH`] in `inbox`, making folders as needed; returns the file's path.
///
/// A file that still lies there from an earlier try is replaced.
pub fn drop_readings(inbox: &Path, text: &str) -> Result<PathBuf> {
    let path = inbox.join(PATH);
    let unfinished = path.with_extension("csv.part");
    write(&path, &unfinished, text).map_err(|error| {
        // What stopped us is the error to tell; a leftover has a name that is never taken for an input.
        let _ = fs::remove_file(&unfinished);
        Diagnostic::new("demo::drop", format!("cannot write {}", path.display())).cause(error).help(
            "the demo needs to write to the project's inbox: check its permissions and the disk's free space",
        )
    })?;
    Ok(path)
}

fn write(path: &Path, unfinished: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = File::create(unfinished)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(unfinished, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_appear_whole_and_alone() {
        let inbox = tempfile::tempdir().unwrap();
        let first = drop_readings(inbox.path(), "first").unwrap();
        let second = drop_readings(inbox.path(), "second").unwrap();
        assert_eq!(first, second);
        assert_eq!(fs::read_to_string(&first).unwrap(), "second");
        assert_eq!(fs::read_dir(first.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn an_inbox_that_is_a_file_is_a_clear_error() {
        let folder = tempfile::tempdir().unwrap();
        let inbox = folder.path().join("inbox");
        fs::write(&inbox, "").unwrap();
        let error = drop_readings(&inbox, "text").unwrap_err();
        assert_eq!(error.code(), "demo::drop");
        assert!(error.advice().is_some());
    }
}
