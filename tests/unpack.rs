//! Hostile archives: whatever they say, nothing outside the folder is touched, and what is refused is named.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;

use proptest::prelude::{Just, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
use tar::EntryType;
use tidemill::event::id::Digest;
use tidemill::sandbox::unpack::{Rules, Unpacked, Unpacker, only_file};

/// An archive, written byte by byte: no library would write these.
#[derive(Default)]
struct Archive(Vec<u8>);

impl Archive {
    fn entry(self, kind: EntryType, name: &[u8], content: &[u8]) -> Self {
        self.lying(kind, name, content.len() as u64, content)
    }

    fn file(self, name: &str, content: &str) -> Self {
        self.entry(EntryType::Regular, name.as_bytes(), content.as_bytes())
    }

    /// An entry whose header says another size than it has.
    fn lying(mut self, kind: EntryType, name: &[u8], size: u64, content: &[u8]) -> Self {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(size);
        header.set_mode(0o6777);
        header.as_old_mut().name[..name.len().min(100)].copy_from_slice(&name[..name.len().min(100)]);
        header.as_old_mut().linkname[..11].copy_from_slice(b"/etc/passwd");
        header.set_cksum();
        self.0.extend_from_slice(header.as_bytes());
        self.0.extend_from_slice(content);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    fn records(self, records: &[(&str, &str)]) -> Self {
        let mut text = String::new();
        for (key, value) in records {
            let rest = key.len() + value.len() + 3;
            let length =
                (1..6).map(|digits| rest + digits).find(|length| length.to_string().len() + rest == *length);
            writeln!(text, "{} {key}={value}", length.unwrap()).unwrap();
        }
        self.entry(EntryType::XHeader, b"records", text.as_bytes())
    }

    fn end(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 1024, 0);
        self.0
    }
}

/// A folder with a neighbour that must stay as it is.
struct Place {
    around: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let around = tempfile::tempdir().unwrap();
        fs::create_dir(around.path().join("into")).unwrap();
        fs::write(around.path().join("neighbour"), "untouched").unwrap();
        Self { around }
    }

    fn folder(&self) -> std::path::PathBuf {
        self.around.path().join("into")
    }

    fn unpack(&self, rules: Rules, archive: &[u8]) -> Unpacked {
        let mut unpacker = Unpacker::new(&self.folder(), rules).unwrap();
        unpacker.archive(archive, "").unwrap();
        unpacker.finish()
    }

    /// Whether nothing was touched but the folder.
    fn is_whole(&self) -> bool {
        let names: BTreeSet<_> =
            fs::read_dir(self.around.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names == BTreeSet::from(["into".into(), "neighbour".into()])
            && fs::read(self.around.path().join("neighbour")).unwrap() == b"untouched"
    }
}

fn unpack(archive: Archive) -> Unpacked {
    let place = Place::new();
    let unpacked = place.unpack(Rules::default(), &archive.end());
    assert!(place.is_whole());
    unpacked
}

fn names(unpacked: &Unpacked) -> Vec<&str> {
    unpacked.files.iter().map(|file| file.path.as_str()).collect()
}

/// Refusals as `name: why`.
fn refusals(unpacked: &Unpacked) -> Vec<String> {
    unpacked.refused.iter().map(|refusal| format!("{}: {}", refusal.name, refusal.why)).collect()
}

#[test]
fn files_and_folders_come_out_as_ours() {
    let place = Place::new();
    let archive = Archive::default()
        .entry(EntryType::Directory, b"./", b"")
        .entry(EntryType::Directory, b"output/", b"")
        .file("output/a.csv", "a,b\n")
        .file("./output/deep/b", "b")
        .file("empty", "");
    let unpacked = place.unpack(Rules::default(), &archive.end());
    assert_eq!(names(&unpacked), ["output/a.csv", "output/deep/b", "empty"]);
    assert_eq!((refusals(&unpacked), &unpacked.stopped), (vec![], &None));
    let file = &unpacked.files[0];
    assert_eq!((file.size, &file.digest), (4, &Digest::of("a,b\n")));
    let data = fs::metadata(&file.file).unwrap();
    let me = fs::metadata(place.folder()).unwrap().uid();
    assert_eq!((data.mode() & 0o7777, data.uid()), (0o600, me));
}

#[test]
fn what_is_no_file_is_refused_by_name() {
    let mut archive = Archive::default();
    for (name, kind) in [
        ("link", EntryType::Symlink),
        ("hard", EntryType::Link),
        ("disk", EntryType::Block),
        ("tty", EntryType::Char),
        ("pipe", EntryType::Fifo),
        ("holes", EntryType::GNUSparse),
        ("odd", EntryType::Continuous),
        ("odder", EntryType::new(b'Z')),
    ] {
        archive = archive.entry(kind, name.as_bytes(), b"");
    }
    let archive = archive
        .records(&[("GNU.sparse.major", "1"), ("GNU.sparse.realsize", "99999999999")])
        .file("newer-holes", "1\n0\n1\n")
        .entry(EntryType::Directory, b"full/", b"content")
        .file("file/", "x")
        .file("good", "x");
    let unpacked = unpack(archive);
    assert_eq!(names(&unpacked), ["good"]);
    assert_eq!(
        refusals(&unpacked),
        [
            "link: is a link, and links are not followed",
            "hard: is a second name of another file (a hard link)",
            "disk: is a device",
            "tty: is a device",
            "pipe: is a pipe",
            "holes: is stored with holes (a sparse file)",
            "odd: is of an unknown kind",
            "odder: is of an unknown kind",
            "newer-holes: is stored with holes (a sparse file)",
            "full: is a folder with a content",
            "file: is a file with the name of a folder",
        ]
    );
}

#[test]
fn names_that_lead_elsewhere_or_are_none_are_refused() {
    let deep = "d/".repeat(33) + "x";
    let long = "n".repeat(256);
    let archive = Archive::default()
        .file("/etc/passwd", "x")
        .file("../neighbour", "x")
        .file("a/../../neighbour", "x")
        .file("..", "x")
        .file("/workspace/x", "x")
        .file("./", "x")
        .entry(EntryType::Regular, b"\xff\xfe", b"x")
        .entry(EntryType::Regular, b"red\x1b[31m", b"x")
        .entry(EntryType::Directory, b"../up/", b"")
        .records(&[("path", "../../neighbour")])
        .file("harmless", "x")
        .file(&deep, "x")
        .records(&[("path", &long)])
        .file("short", "x")
        .file("good", "x");
    let unpacked = unpack(archive);
    assert_eq!(names(&unpacked), ["good"]);
    let told = refusals(&unpacked);
    assert_eq!(told.len(), 12, "{told:#?}");
    for (told, why) in told.iter().zip([
        "is absolute",
        "leaves the folder",
        "leaves the folder",
        "leaves the folder",
        "is absolute",
        "is a file with the name of a folder",
        "not UTF-8",
        "control character",
        "leaves the folder",
        "leaves the folder",
        "lies 33 folders deep",
        "a part of more than 255 bytes",
    ]) {
        assert!(told.contains(why), "{told}: {why}");
        assert!(!told.contains('\u{1b}'), "{told:?}");
    }
}

#[test]
fn long_names_are_names() {
    let long = format!("{}/{}", "a".repeat(200), "b".repeat(200));
    let unpacked = unpack(
        Archive::default()
            .entry(EntryType::GNULongName, b"././@LongLink", format!("{long}\0").as_bytes())
            .file("cut", "gnu")
            .records(&[("path", "żółw.txt"), ("SCHILY.xattr.user.note", "two\nlines")])
            .file("cut", "pax"),
    );
    assert_eq!(names(&unpacked), [long.as_str(), "żółw.txt"]);
}

#[test]
fn what_comes_twice_or_differs_in_case_only_is_refused() {
    let unpacked = unpack(
        Archive::default()
            .file("a", "first")
            .file("a", "second")
            .file("A", "third")
            .file("./a", "fourth")
            .file("folder/x", "x")
            .file("Folder/y", "y")
            .file("folder", "file")
            .file("a/under", "x")
            .entry(EntryType::Directory, b"a/", b"")
            .entry(EntryType::Directory, b"folder/", b""),
    );
    assert_eq!(names(&unpacked), ["a", "folder/x"]);
    assert_eq!(unpacked.files[0].digest, Digest::of("first"));
    assert_eq!(unpacked.refusals, 7, "{:#?}", refusals(&unpacked));
}

#[test]
fn a_link_that_stands_in_the_folder_is_not_written_through() {
    let place = Place::new();
    symlink("../neighbour", place.folder().join("file")).unwrap();
    symlink("..", place.folder().join("folder")).unwrap();
    let archive = Archive::default().file("file", "x").file("folder/neighbour", "x").end();
    let unpacked = place.unpack(Rules::default(), &archive);
    assert!(place.is_whole());
    assert_eq!(
        refusals(&unpacked),
        ["file: stands there already", "folder/neighbour: lies under what is no folder"]
    );
}

#[test]
fn sizes_are_capped_each_and_together() {
    let place = Place::new();
    let rules = Rules { file: 10, total: 15, ..Rules::default() };
    let archive = Archive::default()
        .file("big", "01234567890")
        .file("a", "0123456789")
        .file("b", "012345")
        .file("c", "01234")
        .file("d", "0");
    let unpacked = place.unpack(rules, &archive.end());
    assert_eq!(names(&unpacked), ["a", "c"]);
    assert_eq!(
        refusals(&unpacked),
        [
            "big: has 11 B, and at most 10 B are taken",
            "b: has 6 B, and all together may have 15 B",
            "d: has 1 B, and all together may have 15 B"
        ]
    );
}

#[test]
fn a_million_entries_are_not_looked_at() {
    /// Empty files without end; nothing of them is ever held in memory.
    struct Endless(u64, io::Cursor<Vec<u8>>);
    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.1.position() == self.1.get_ref().len() as u64 {
                self.0 += 1;
                self.1 = io::Cursor::new(Archive::default().file(&format!("{}", self.0), "").0);
            }
            self.1.read(buffer)
        }
    }
    let place = Place::new();
    let mut unpacker = Unpacker::new(&place.folder(), Rules { entries: 1000, ..Rules::default() }).unwrap();
    let mut endless = Endless(0, io::Cursor::default());
    unpacker.archive(&mut endless, "").unwrap();
    let done = unpacker.finish();
    assert_eq!(done.files.len(), 1000);
    assert_eq!(done.stopped.as_deref(), Some("has more than 1000 entries"));
    assert!(endless.0 < 1100, "{} were read", endless.0);
}

#[test]
fn refusals_are_listed_up_to_a_cap_and_counted_beyond() {
    let archive = (0..500).fold(Archive::default(), |archive, number| {
        archive.entry(EntryType::Symlink, number.to_string().as_bytes(), b"")
    });
    let unpacked = unpack(archive);
    assert_eq!((unpacked.refused.len(), unpacked.refusals), (100, 500));
}

#[test]
fn headers_that_blow_up_end_the_archive() {
    let bomb =
        |kind| Archive::default().file("good", "x").lying(kind, b"bomb", 1 << 40, b"").file("after", "x");
    for kind in [EntryType::GNULongName, EntryType::GNULongLink, EntryType::XHeader, EntryType::XGlobalHeader]
    {
        let unpacked = unpack(bomb(kind));
        assert_eq!(names(&unpacked), ["good"]);
        assert!(unpacked.stopped.as_deref().unwrap().contains("has a header of"), "{unpacked:?}");
    }
    let many = (0..100).fold(Archive::default(), |archive, _| archive.records(&[("comment", "x")]));
    assert!(unpack(many.file("x", "x")).stopped.unwrap().contains("more than 4 headers"));
    let two = Archive::default()
        .records(&[("path", "a")])
        .entry(EntryType::GNULongName, b"l", b"b\0")
        .file("c", "x");
    assert!(unpack(two).stopped.unwrap().contains("two names"));
    let sizes = Archive::default().records(&[("size", "512")]).file("smuggled", "x");
    assert!(unpack(sizes).stopped.unwrap().contains("two sizes"));
    let nothing = Archive::default().records(&[("path", "a")]);
    assert!(unpack(nothing).stopped.unwrap().contains("ends where an entry was announced"));
}

#[test]
fn a_size_that_lies_and_an_archive_that_is_cut_leave_no_half_file() {
    let place = Place::new();
    let whole = Archive::default().file("good", "x").lying(EntryType::Regular, b"half", 5000, b"only this").0;
    let unpacked = place.unpack(Rules::default(), &whole);
    assert_eq!(names(&unpacked), ["good"]);
    assert_eq!(refusals(&unpacked), ["half: ends too early"]);
    assert!(!place.folder().join("half").exists());
    for size in [u64::MAX, u64::MAX - 511, 1 << 62] {
        let giant = Archive::default().lying(EntryType::Regular, b"giant", size, b"").file("after", "x");
        assert!(names(&unpack(giant)).is_empty());
    }
}

#[test]
fn what_is_packed_stays_packed() {
    // The beginning of a gzip bomb and of a zip: bytes like any others.
    let gzip = [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3][..], &[0xec; 500]].concat();
    let zip = [&b"PK\x03\x04"[..], &[7; 100]].concat();
    let archive = Archive::default().entry(EntryType::Regular, b"bomb.gz", &gzip).entry(
        EntryType::Regular,
        b"bomb.zip",
        &zip,
    );
    let place = Place::new();
    let unpacked = place.unpack(Rules::default(), &archive.end());
    assert_eq!(names(&unpacked), ["bomb.gz", "bomb.zip"]);
    assert_eq!(fs::read(&unpacked.files[0].file).unwrap(), gzip);
    assert_eq!(fs::read(&unpacked.files[1].file).unwrap(), zip);
}

#[test]
fn several_archives_are_counted_together_and_go_where_they_belong() {
    let place = Place::new();
    let mut unpacker = Unpacker::new(&place.folder(), Rules { total: 3, ..Rules::default() }).unwrap();
    unpacker.archive(&*Archive::default().file("x", "12").end(), "a/b").unwrap();
    unpacker
        .archive(&*Archive::default().file("x", "12").file("../y", "1").file("z", "1").end(), "c/")
        .unwrap();
    let done = unpacker.finish();
    assert_eq!(names(&done), ["a/b/x", "c/z"]);
    assert_eq!(done.refusals, 2);
    assert!(place.is_whole());
}

#[test]
fn a_file_without_a_name_is_refused_wherever_it_would_go() {
    let place = Place::new();
    let mut unpacker = Unpacker::new(&place.folder(), Rules::default()).unwrap();
    unpacker.archive(&*Archive::default().file("", "one").file("x", "two").end(), "under").unwrap();
    let done = unpacker.finish();
    assert_eq!(names(&done), ["under/x"]);
    assert_eq!(refusals(&done), ["under: has no name"]);
    assert!(place.is_whole());
}

#[test]
fn one_file_is_read_without_the_disk() {
    let archive = Archive::default().file("a", "hello").end();
    assert_eq!(only_file(&*archive, 5).unwrap().as_ref(), b"hello");
    assert!(only_file(&*archive, 4).unwrap_err().contains("at most 4 B"));
    assert!(only_file(&*Archive::default().entry(EntryType::Symlink, b"a", b"").end(), 5).is_err());
    assert!(only_file(&*Archive::default().entry(EntryType::Directory, b"a/", b"").end(), 5).is_err());
    assert!(only_file(io::empty(), 5).is_err());
}

/// Every file and folder below `folder`; links are not followed.
fn found(folder: &Path) -> (BTreeSet<std::path::PathBuf>, u64) {
    let (mut files, mut bytes, mut pending) = (BTreeSet::new(), 0, vec![folder.to_owned()]);
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let data = fs::symlink_metadata(&path).unwrap();
            assert!(data.is_dir() || data.is_file(), "{} is neither", path.display());
            if data.is_dir() {
                pending.push(path);
            } else {
                bytes += data.len();
                files.insert(path);
            }
        }
    }
    (files, bytes)
}

/// Rules that random archives often meet.
const TIGHT: Rules =
    Rules { file: 600, total: 2000, entries: 12, depth: 3, path: 40, part: 20, extension: 700, refusals: 5 };

fn check(archive: &[u8]) -> Result<(), proptest::test_runner::TestCaseError> {
    let (first, second) = (Place::new(), Place::new());
    let unpacked = first.unpack(TIGHT, archive);
    prop_assert!(first.is_whole());
    let (files, bytes) = found(&first.folder());
    let told: BTreeSet<_> = unpacked.files.iter().map(|file| file.file.clone()).collect();
    prop_assert_eq!(&files, &told, "what is there is what is told");
    prop_assert_eq!(unpacked.files.len(), told.len());
    prop_assert!(bytes <= TIGHT.total && unpacked.files.len() as u64 <= TIGHT.entries);
    for file in &unpacked.files {
        let content = fs::read(&file.file).unwrap();
        prop_assert!(content.len() as u64 == file.size && file.size <= TIGHT.file);
        prop_assert_eq!(&Digest::of(&content), &file.digest);
    }
    prop_assert!(unpacked.refused.len() <= TIGHT.refusals && unpacked.refusals <= TIGHT.entries);
    let again = second.unpack(TIGHT, archive);
    prop_assert_eq!(&again.refused, &unpacked.refused, "the same archive, the same report");
    prop_assert_eq!(&again.stopped, &unpacked.stopped);
    prop_assert_eq!(names(&again), names(&unpacked));
    Ok(())
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        4 => prop::sample::select(vec!["a", "A", "b", "folder", "Folder", "x.csv"]).prop_map(|text| text.as_bytes().to_vec()),
        2 => prop::sample::select(vec!["..", ".", "", "neighbour", "into"]).prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..30),
    ];
    prop::collection::vec(part, 1..5).prop_map(|parts| parts.join(&b'/'))
}

fn kind() -> impl Strategy<Value = EntryType> {
    prop_oneof![
        6 => Just(EntryType::Regular),
        2 => Just(EntryType::Directory),
        3 => prop::sample::select(b"\x00123456KLSxgZ".to_vec()).prop_map(EntryType::new),
    ]
}

fn entries() -> impl Strategy<Value = Vec<u8>> {
    let entry = (
        kind(),
        name(),
        prop::collection::vec(any::<u8>(), 0..1200),
        prop::option::weighted(0.1, any::<u64>()),
    );
    prop::collection::vec(entry, 0..16).prop_map(|entries| {
        let write =
            |archive: Archive, (kind, name, content, lie): (EntryType, Vec<u8>, Vec<u8>, Option<u64>)| {
                let size = lie.map_or(content.len() as u64, |lie| lie % 5000);
                archive.lying(kind, &name, size, &content)
            };
        entries.into_iter().fold(Archive::default(), write).end()
    })
}

proptest! {
    #[test]
    fn any_archive_stays_in_its_folder_and_in_its_rules(archive in entries()) {
        check(&archive)?;
    }

    #[test]
    fn so_does_one_that_was_cut_or_changed(
        archive in entries(),
        cut in any::<prop::sample::Index>(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
    ) {
        let mut archive = archive;
        for (place, byte) in flips {
            let place = place.index(archive.len());
            archive[place] = byte;
        }
        archive.truncate(cut.index(archive.len()) + 1);
        check(&archive)?;
    }

    #[test]
    fn so_do_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
        check(&bytes)?;
    }
}
