//! Names for files that are put away or back: never one that is taken, never one too long.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// The longest name that file systems take, in bytes.
const LONGEST: usize = 255;

/// So many names are tried: its own, with the run's id, then with a number.
pub(super) const ATTEMPTS: u32 = 100;

/// The path for that attempt: its own, then `stem-MARK.ext`, then `stem-MARK-2.ext`, ...
pub(super) fn numbered(path: &Path, mark: &str, attempt: u32) -> PathBuf {
    let name = path.file_name().unwrap_or_default();
    let mark = match attempt {
        0 => return path.to_owned(),
        1 => format!("-{mark}"),
        _ => format!("-{mark}-{attempt}"),
    };
    path.with_file_name(marked(name, &mark))
}

/// The path with a suffix behind its name, which is cut where it would be too long.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().as_bytes();
    let mut beside = name[..name.len().min(LONGEST - suffix.len())].to_vec();
    beside.extend_from_slice(suffix.as_bytes());
    path.with_file_name(OsString::from_vec(beside))
}

/// Puts `mark` before the extension, cutting the stem where the name would be too long.
fn marked(name: &OsStr, mark: &str) -> OsString {
    let bytes = name.as_bytes();
    let dot = bytes.iter().rposition(|byte| *byte == b'.').filter(|dot| *dot > 0);
    let (stem, extension) = bytes.split_at(dot.unwrap_or(bytes.len()));
    // An extension this long is none.
    let (stem, extension) = if extension.len() > LONGEST / 4 { (bytes, &[][..]) } else { (stem, extension) };
    let room = LONGEST - extension.len() - mark.len();
    let mut marked = stem[..stem.len().min(room)].to_vec();
    marked.extend_from_slice(mark.as_bytes());
    marked.extend_from_slice(extension);
    OsString::from_vec(marked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(path: &str, attempt: u32) -> String {
        numbered(Path::new(path), "20261130-231805-k3xq", attempt).display().to_string()
    }

    #[test]
    fn the_mark_stands_before_the_extension() {
        assert_eq!(name("energy/a.csv", 0), "energy/a.csv");
        assert_eq!(name("energy/a.csv", 1), "energy/a-20261130-231805-k3xq.csv");
        assert_eq!(name("a.tar.gz", 2), "a.tar-20261130-231805-k3xq-2.gz");
        assert_eq!(name("README", 1), "README-20261130-231805-k3xq");
    }

    #[test]
    fn no_name_is_too_long() {
        let long = format!("{}.csv", "x".repeat(251));
        for attempt in [0, 1, 99] {
            let name = name(&long, attempt);
            let beside = beside(Path::new(&name), ".reason.txt");
            assert!(name.len() <= 255 && name.rsplit('.').next() == Some("csv"), "{name}");
            assert!(beside.as_os_str().len() <= 255, "{beside:?}");
        }
    }

    #[test]
    fn bytes_stay_bytes() {
        let path = Path::new(OsStr::from_bytes(b"\xff.csv"));
        assert_eq!(numbered(path, "m", 1).as_os_str().as_bytes(), b"\xff-m.csv");
    }
}
