//! Reading an artifact, never more of it than a check can bear.

use std::fs::File;
use std::io::{self, Read};

use crate::expect::report::Report;
use crate::workflow::units::show_size;
use crate::workflow::view::Artifact;

/// Bytes from which a file's kind is told.
const HEAD: u64 = 8 * 1024;

/// Opens an artifact, or adds why it cannot be read.
pub(super) fn open(artifact: &Artifact, report: &mut Report<'_>) -> Option<File> {
    let file = File::open(&artifact.file);
    file.map_err(|error| unreadable(&error, report)).ok()
}

/// Adds that an artifact cannot be read.
pub(super) fn unreadable(error: &io::Error, report: &mut Report<'_>) {
    report.add("output.unreadable", format!("the file cannot be read: {error}"), |finding| finding);
}

/// The whole content, or adds why there is none. `most` bytes at most.
pub(super) fn whole(artifact: &Artifact, most: u64, report: &mut Report<'_>) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = open(artifact, report)?.take(most + 1).read_to_end(&mut bytes);
    if let Err(error) = read {
        unreadable(&error, report);
        return None;
    }
    if bytes.len() as u64 > most {
        report.add("output.too_large", "the file is too large to be checked", |finding| {
            finding.expected(format!("at most {}", show_size(most))).found(show_size(artifact.size))
        });
        return None;
    }
    Some(bytes)
}

/// The first bytes, or adds why there are none.
pub(super) fn head(artifact: &Artifact, report: &mut Report<'_>) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    match open(artifact, report)?.take(HEAD).read_to_end(&mut bytes) {
        Ok(_) => Some(bytes),
        Err(error) => {
            unreadable(&error, report);
            None
        }
    }
}

/// What the first bytes show, in words.
pub(super) fn kind(head: &[u8]) -> String {
    if let Some(kind) = infer::get(head) {
        return kind.mime_type().to_owned();
    }
    let text = if head.is_empty() {
        "an empty file"
    } else if head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]) {
        "text in UTF-16"
    } else if head.contains(&0) {
        "binary data of no known kind"
    } else if std::str::from_utf8(head).is_ok_and(|text| !text.contains(char::is_control))
        || head.iter().all(|byte| !byte.is_ascii_control() || byte.is_ascii_whitespace())
    {
        "text"
    } else {
        "data of no known kind"
    };
    text.to_owned()
}
