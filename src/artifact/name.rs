//! The name of a published folder: a file name of someone else's choosing made harmless.

use std::os::unix::ffi::OsStrExt;

use crate::event::id::RunId;
use crate::event::input::InputFile;

/// Longer stems are cut: the name stays readable in a listing and far below what file systems allow.
const STEM_LIMIT: usize = 80;

/// `<stem of the first input>-<run>`, or the run alone when there is no input or nothing of its name is usable.
///
/// The stem keeps `[A-Za-z0-9._-]`, every other run of bytes becomes one `_`, and it never begins with a dot or a
/// dash, so that no name hides itself, climbs out or looks like an option.
pub fn folder_name(inputs: &[InputFile], run: &RunId) -> String {
    let stem = inputs
        .first()
        .and_then(|input| input.path.as_path().file_stem())
        .map(|stem| harmless(stem.as_bytes()))
        .unwrap_or_default();
    if stem.is_empty() { run.to_string() } else { format!("{stem}-{run}") }
}

fn harmless(stem: &[u8]) -> String {
    let mut name = String::new();
    for &byte in stem {
        if name.len() == STEM_LIMIT {
            break;
        }
        let kept = byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let character = if kept { char::from(byte) } else { '_' };
        let leads = name.is_empty() && matches!(character, '.' | '-' | '_');
        let repeats = !kept && name.ends_with('_');
        if !leads && !repeats {
            name.push(character);
        }
    }
    name.trim_end_matches(['_', '.', '-']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    use crate::event::id::Digest;
    use crate::event::input::RawPath;

    fn named(path: &[u8]) -> String {
        let input = InputFile {
            path: RawPath::new(OsString::from_vec(path.to_vec())),
            size: 0,
            digest: Digest::of(""),
        };
        folder_name(&[input], &RunId::parse("r1").unwrap())
    }

    #[test]
    fn an_ordinary_name_stays_readable() {
        assert_eq!(named(b"energy/house 7 (new).csv"), "house_7_new-r1");
        assert_eq!(named(b"data.2026-11.csv"), "data.2026-11-r1");
    }

    #[test]
    fn a_hostile_name_is_harmless() {
        for (name, folder) in [
            (b"-rf.csv".as_slice(), "rf-r1"),
            (b"..", "r1"),
            (b"../../etc/passwd", "passwd-r1"),
            (b"....csv", "r1"),
            (b".hidden", "hidden-r1"),
            (b"a\nb.csv", "a_b-r1"),
            (b"\x1b[31mred.csv", "31mred-r1"),
            ("\u{1f600}.csv".as_bytes(), "r1"),
            (b"\xff\xfe.csv", "r1"),
            (b"a\xffb.csv", "a_b-r1"),
            (b"'; rm -rf ~; '.csv", "rm_-rf-r1"),
            (b"con$(id)`id`.csv", "con_id_id-r1"),
        ] {
            assert_eq!(named(name), folder, "{name:?}");
        }
    }

    #[test]
    fn a_long_name_is_cut_and_no_input_is_no_trouble() {
        assert_eq!(named(&[b'x'; 300]), format!("{}-r1", "x".repeat(80)));
        assert_eq!(folder_name(&[], &RunId::parse("r1").unwrap()), "r1");
    }
}
