//! A damaged database: what can be saved of it, and that it is left as it is.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tidemill::event::What;
use tidemill::event::id::{Digest, RunId};
use tidemill::event::input::{Fingerprint, InputChange, RawPath};
use tidemill::event::state::{InputState, RunState};
use tidemill::event::trigger::Trigger;
use tidemill::store::{FirstPage, NewRun, Salvaged, Store, salvage};

/// Runs in the database, each with its two first events and one long one.
const RUNS: usize = 200;

/// A state folder with a database of many pages.
struct Damaged {
    state: TempDir,
    into: TempDir,
}

impl Damaged {
    async fn new() -> Self {
        let state = TempDir::with_prefix("tidemill-salvage-").unwrap();
        let store = Store::open(state.path()).await.unwrap();
        for number in 0..RUNS {
            let id = RunId::parse(&format!("20261130-230000-{number:04}")).unwrap();
            let at = "2026-11-30T23:00:00Z".parse().unwrap();
            store
                .queue_run(NewRun::new(id.clone(), "w", Trigger::Drop, Digest::of("s"), "m", at))
                .await
                .unwrap();
            let reason = Some("x".repeat(1500));
            store.append(&id, What::StateEntered { state: RunState::Preparing, reason }).await.unwrap();
        }
        let change = InputChange {
            path: RawPath::new("energy/a.csv"),
            fingerprint: Fingerprint { size: 3, mtime_ns: 1, inode: 2, device: 3 },
            state: InputState::Seen,
            reason: None,
        };
        store.record(std::slice::from_ref(&change)).await.unwrap();
        store.ready(&[change]).await.unwrap();
        store.close().await;
        Self { state, into: TempDir::with_prefix("tidemill-salvage-").unwrap() }
    }

    fn file(&self) -> PathBuf {
        self.state.path().join(Store::FILE)
    }

    /// Damages the bytes of the database, saves, and holds that nothing of the original was touched.
    async fn salvage(&self, damage: impl FnOnce(&mut Vec<u8>)) -> Salvaged {
        let mut bytes = fs::read(self.file()).unwrap();
        damage(&mut bytes);
        fs::write(self.file(), &bytes).unwrap();
        self.save().await
    }

    async fn save(&self) -> Salvaged {
        let before = snapshot(self.state.path());
        let salvaged = salvage(&self.file(), self.into.path()).await.unwrap();
        assert_eq!(snapshot(self.state.path()), before, "the original was touched");
        let left = fs::read_dir(self.into.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let left: BTreeSet<String> = left.map(|name| name.into_string().unwrap()).collect();
        let tables = salvaged.tables.iter().map(|table| format!("{}.jsonl", table.name)).collect();
        assert_eq!(left, tables, "the copy is gone");
        for table in &salvaged.tables {
            assert_eq!(self.rows(&table.name).len() as u64, table.rows, "{}", table.name);
        }
        salvaged
    }

    fn rows(&self, table: &str) -> Vec<serde_json::Value> {
        let text = fs::read_to_string(self.into.path().join(format!("{table}.jsonl"))).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Names and content of what stands in a folder.
fn snapshot(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let mut files: Vec<_> = files.map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    files.sort();
    files
}

fn count(salvaged: &Salvaged, name: &str) -> (u64, bool) {
    let table = salvaged.tables.iter().find(|table| table.name == name).unwrap();
    (table.rows, table.gaps)
}

const ALL_EVENTS: u64 = RUNS as u64 * 3;

#[tokio::test]
async fn all_of_a_whole_database_is_saved() {
    let damaged = Damaged::new().await;
    let salvaged = damaged.salvage(|_| ()).await;
    assert_eq!((salvaged.lost_pages, salvaged.first_page), (0, FirstPage::Whole));
    assert_eq!(count(&salvaged, "runs"), (RUNS as u64, false));
    assert_eq!(count(&salvaged, "events"), (ALL_EVENTS, false));
    let run = damaged.rows("runs").remove(7);
    assert_eq!((&run["id"], &run["workflow"]), (&"20261130-230000-0007".into(), &"w".into()));
    assert_eq!(salvaged.claimed.len(), 1);
    assert_eq!(salvaged.claimed[0].dropped, RawPath::new("energy/a.csv"));
    assert_eq!(salvaged.claimed[0].claimed, RawPath::new("claimed/1/a.csv"));
}

#[tokio::test]
async fn of_one_that_was_cut_off_the_rest_is_saved() {
    let damaged = Damaged::new().await;
    let salvaged = damaged.salvage(|bytes| bytes.truncate(bytes.len() / 2 / 4096 * 4096)).await;
    assert!(salvaged.lost_pages >= salvaged.pages / 2, "{salvaged:?}");
    let (events, gaps) = count(&salvaged, "events");
    assert!(gaps && events > ALL_EVENTS / 10 && events < ALL_EVENTS, "{events}");
}

#[tokio::test]
async fn around_a_page_in_the_middle_everything_is_saved() {
    let damaged = Damaged::new().await;
    // A page with events: one of those that hold the long text.
    let salvaged = damaged
        .salvage(|bytes| {
            let pages: Vec<usize> = (1..bytes.len() / 4096)
                .filter(|page| {
                    bytes[page * 4096..][..4096]
                        .windows(400)
                        .any(|part| part.iter().all(|byte| *byte == b'x'))
                })
                .collect();
            let page = pages[pages.len() / 2];
            bytes[page * 4096..(page + 1) * 4096].fill(0xa5);
        })
        .await;
    assert_eq!(salvaged.lost_pages, 1, "{salvaged:?}");
    let (events, gaps) = count(&salvaged, "events");
    assert!(gaps && (ALL_EVENTS - 20..ALL_EVENTS).contains(&events), "{events} of {ALL_EVENTS}");
    assert_eq!(count(&salvaged, "runs"), (RUNS as u64, false));
}

#[tokio::test]
async fn without_its_header_or_its_first_page_all_the_rest_is_saved() {
    for (length, first_page) in [(100, FirstPage::Header), (4096, FirstPage::Replaced)] {
        let damaged = Damaged::new().await;
        let salvaged = damaged.salvage(|bytes| bytes[..length].fill(0)).await;
        assert_eq!(salvaged.first_page, first_page);
        assert_eq!(salvaged.lost_pages, 1, "{salvaged:?}");
        assert_eq!(count(&salvaged, "runs"), (RUNS as u64, false));
        assert_eq!(count(&salvaged, "events"), (ALL_EVENTS, false));
    }
}

#[tokio::test]
async fn a_journal_that_is_there_counts_and_one_that_is_not_or_is_nonsense_does_not() {
    for journal in ["there", "gone", "nonsense"] {
        let damaged = Damaged::new().await;
        // As a process leaves them that was killed: the journal is not folded into the database.
        let store = Store::open(damaged.state.path()).await.unwrap();
        let id = RunId::parse("20261201-000000-last").unwrap();
        let at = "2026-12-01T00:00:00Z".parse().unwrap();
        store.queue_run(NewRun::new(id, "w", Trigger::Drop, Digest::of("s"), "m", at)).await.unwrap();
        let killed: Vec<_> = snapshot(damaged.state.path());
        store.close().await;
        for (path, bytes) in killed {
            fs::write(path, bytes).unwrap();
        }
        let wal = damaged.state.path().join("tidemill.db-wal");
        assert!(fs::metadata(&wal).unwrap().len() > 0);
        let wanted = match journal {
            "there" => RUNS as u64 + 1,
            "gone" => {
                fs::remove_file(&wal).unwrap();
                RUNS as u64
            }
            _ => {
                fs::write(&wal, vec![0x5a; 9000]).unwrap();
                RUNS as u64
            }
        };
        let salvaged = damaged.save().await;
        assert_eq!(count(&salvaged, "runs"), (wanted, false), "{journal}");
    }
}

#[tokio::test]
async fn what_is_no_database_at_all_saves_nothing_and_says_so() {
    let damaged = Damaged::new().await;
    let salvaged = damaged.salvage(|bytes| bytes.fill(0x5a)).await;
    assert!(salvaged.tables.iter().all(|table| table.rows == 0), "{salvaged:?}");
    assert_ne!(salvaged.first_page, FirstPage::Whole);
    let again = salvage(&damaged.file(), damaged.into.path()).await.unwrap_err();
    assert_eq!(again.code(), "salvage::occupied");
    let none = salvage(Path::new("/nowhere/x.db"), damaged.into.path()).await.unwrap_err();
    assert_eq!(none.code(), "salvage::none");
}

#[tokio::test]
async fn an_empty_file_in_place_of_the_database_is_not_taken_for_a_new_one() {
    let damaged = Damaged::new().await;
    fs::create_dir_all(damaged.state.path().join("claimed/1")).unwrap();
    fs::write(damaged.file(), "").unwrap();
    let _ = fs::remove_file(damaged.state.path().join("tidemill.db-wal"));
    let refused = Store::open(damaged.state.path()).await.unwrap_err();
    assert_eq!(refused.code(), "store::missing");
    assert_eq!(fs::metadata(damaged.file()).unwrap().len(), 0);
}
