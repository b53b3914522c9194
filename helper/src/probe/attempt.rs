//! How an attempt ended, in the words of a report.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};

use super::Held;

/// The kernel's ways to say no: no permission, no right, read-only, no such call.
const REFUSALS: [i32; 4] = [1, 13, 30, 38];

/// An attempt that must be refused: not merely fail, for a kernel that got as far as looking at the arguments would
/// have done it.
pub(super) fn refused<T>(attempt: io::Result<T>) -> Held {
    match attempt {
        Ok(_) => Err("it was allowed".to_owned()),
        Err(error) if error.raw_os_error().is_some_and(|code| REFUSALS.contains(&code)) => Ok(words(&error)),
        Err(error) => Err(format!("it was not refused, it only failed: {}", words(&error))),
    }
}

/// Like [`refused`], where another answer says as clearly that there is nothing to get: a user that does not exist in
/// here, a number of namespaces that is zero.
pub(super) fn refused_or<T>(attempt: io::Result<T>, nothing: i32) -> Held {
    match attempt {
        Err(error) if error.raw_os_error() == Some(nothing) => Ok(words(&error)),
        other => refused(other),
    }
}

/// Attempts that must all be refused.
pub(super) fn all_refused<const COUNT: usize>(attempts: [(&str, io::Result<usize>); COUNT]) -> Held {
    let mut last = String::new();
    for (what, attempt) in attempts {
        last = refused(attempt).map_err(|got| format!("{what}: {got}"))?;
    }
    Ok(last)
}

/// An error without its number.
pub(super) fn words(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// None of the files can be opened for writing. Nothing is written.
pub(super) fn none_writable(paths: &[&str]) -> Held {
    let open: Vec<&str> =
        paths.iter().copied().filter(|path| OpenOptions::new().write(true).open(path).is_ok()).collect();
    nothing_of(&open, "can be written", "none can be written", paths.len())
}

/// None of the files gives a byte.
pub(super) fn none_readable(paths: &[&str]) -> Held {
    let open: Vec<&str> = paths.iter().copied().filter(|path| gives_bytes(path)).collect();
    nothing_of(&open, "can be read", "none gives a byte", paths.len())
}

fn gives_bytes(path: &str) -> bool {
    let mut byte = [0; 1];
    File::open(path).and_then(|mut file| file.read(&mut byte)).is_ok_and(|count| count > 0)
}

/// None of the folders has an entry.
pub(super) fn none_listable(paths: &[&str]) -> Held {
    let full = |path: &str| std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
    let open: Vec<&str> = paths.iter().copied().filter(|path| full(path)).collect();
    nothing_of(&open, "can be listed", "none shows an entry", paths.len())
}

fn nothing_of(found: &[&str], got: &str, held: &str, tried: usize) -> Held {
    if found.is_empty() {
        Ok(format!("{held}, of {tried} tried"))
    } else {
        Err(format!("{} {got}", found.join(", ")))
    }
}

/// A field of `/proc/self/status`.
pub(super) fn status(field: &str) -> Result<String, String> {
    field_of("/proc/self/status", field)
}

/// A field of a file in the form of `/proc/PID/status`.
pub(super) fn field_of(path: &str, field: &str) -> Result<String, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {}", words(&error)))?;
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| *name == field)
        .map(|(_, value)| value.trim().to_owned())
        .ok_or_else(|| format!("{path} has no {field}"))
}
