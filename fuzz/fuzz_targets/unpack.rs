//! Any bytes as an archive: nothing outside the folder is touched, and what is told is what is there.

#![no_main]

use std::fs;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tidemill::sandbox::unpack::{Rules, Unpacker, only_file};

/// Rules that a few kilobytes can meet.
const TIGHT: Rules =
    Rules { file: 1500, total: 4000, entries: 16, depth: 3, path: 60, part: 30, extension: 700, refusals: 5 };

fuzz_target!(|archive: &[u8]| {
    let around = tempfile::tempdir().expect("a temporary folder");
    let into = around.path().join("into");
    fs::create_dir(&into).expect("a folder");
    let mut unpacker = Unpacker::new(&into, TIGHT).expect("an open folder");
    unpacker.archive(archive, "under").expect("only our disk can fail");
    let unpacked = unpacker.finish();
    assert_eq!(fs::read_dir(around.path()).expect("a folder").count(), 1, "something stands beside the folder");
    let (files, bytes) = count(&into);
    assert_eq!(files, unpacked.files.len());
    assert_eq!(bytes, unpacked.files.iter().map(|file| file.size).sum::<u64>());
    assert!(bytes <= TIGHT.total && files as u64 <= TIGHT.entries);
    assert!(unpacked.refused.len() <= TIGHT.refusals && unpacked.refusals <= TIGHT.entries);
    if let Ok(content) = only_file(archive, TIGHT.file) {
        assert!(content.len() as u64 <= TIGHT.file);
    }
});

/// Regular files below `folder` and their bytes; anything but files and folders is a find.
fn count(folder: &Path) -> (usize, u64) {
    let (mut files, mut bytes) = (0, 0);
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let data = fs::symlink_metadata(&path).expect("it is there");
        if data.is_dir() {
            let below = count(&path);
            (files, bytes) = (files + below.0, bytes + below.1);
        } else {
            assert!(data.is_file(), "{} is neither file nor folder", path.display());
            (files, bytes) = (files + 1, bytes + data.len());
        }
    }
    (files, bytes)
}
