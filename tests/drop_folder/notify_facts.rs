//! What notify was measured to lose, and that nothing of it is lost here: each fact holds for a disk whose changes are
//! told and for one that has to be polled.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use notify::{
    Config, Error, ErrorKind, EventHandler, RecommendedWatcher, RecursiveMode, Watcher, WatcherKind,
};
use tempfile::TempDir;
use tidemill::event::What;
use tidemill::event::id::{Digest, RunId};
use tidemill::event::state::RunState;
use tidemill::event::trigger::Trigger;
use tidemill::store::{NewRun, Store};
use tidemill::trigger::drop_folder::dirty::Dirty;
use tidemill::trigger::drop_folder::scan::Sight;
use tidemill::trigger::drop_folder::watch::Machine;
use tokio::sync::Notify;

use super::eyes::{DEAF, DISK, Eyes, SHARE};
use super::harness::soon;

const BOTH: [Machine; 2] = [DISK, SHARE];

/// A recursive watch saw 34 of 50 files, and 6 with the next version of notify.
#[tokio::test]
async fn fifty_files_in_folders_that_were_just_made() {
    for machine in BOTH {
        let mut eyes = Eyes::on(machine);
        for number in 0..50 {
            eyes.put(format!("d{number}/a/b/x.csv"), "abc");
        }
        eyes.see_all().await;
        assert_eq!(eyes.count(), 50);
        // The new folders are heard of from now on.
        eyes.put("d49/a/b/y.csv", "abc");
        eyes.see_all().await;
        assert_eq!(eyes.count(), 51);
    }
}

/// A recursive watch saw none of them.
#[tokio::test]
async fn ten_files_in_a_folder_that_was_moved_in() {
    for machine in BOTH {
        let mut eyes = Eyes::on(machine);
        for number in 0..10 {
            let folder = eyes.outside(format!("moved/{number}/deep"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("x.csv"), "abc").unwrap();
        }
        fs::rename(eyes.outside("moved"), eyes.inside("moved")).unwrap();
        eyes.see_all().await;
        assert_eq!(eyes.count(), 10);
        eyes.put("moved/3/deep/y.csv", "abc");
        eyes.see_all().await;
        assert_eq!(eyes.count(), 11);
    }
}

/// Whoever holds it keeps notify's thread from reading.
static BUSY: Mutex<()> = Mutex::new(());

fn slow(dirty: Arc<Dirty>) -> notify::Result<Box<dyn Watcher + Send>> {
    let watcher: RecommendedWatcher = notify::recommended_watcher(move |event| {
        drop(BUSY.lock().unwrap_or_else(PoisonError::into_inner));
        dirty.mark(&event);
    })?;
    Ok(Box::new(watcher))
}

/// Of 40,000 events for a slow consumer 5,612 arrived, and one that says that events were lost.
#[tokio::test]
async fn more_events_than_the_system_keeps() {
    let kept = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let kept: usize = kept.trim().parse().unwrap();
    for machine in [Machine { watcher: slow, ..DISK }, SHARE] {
        let mut eyes = Eyes::on(machine);
        eyes.put("a/0.csv", "abc");
        eyes.see_all().await;
        let whole = eyes.whole;
        {
            let _busy = BUSY.lock().unwrap_or_else(PoisonError::into_inner);
            // Each rename is an event of leaving and one of coming.
            let names = [eyes.inside("a/0.csv"), eyes.inside("a/1.csv")];
            for turn in 0..=kept {
                fs::rename(&names[turn % 2], &names[(turn + 1) % 2]).unwrap();
            }
            for number in 0..50 {
                fs::write(eyes.outside("aside"), "abc").unwrap();
                fs::rename(eyes.outside("aside"), eyes.inside(format!("late-{number}.csv"))).unwrap();
            }
        }
        eyes.see_all().await;
        assert_eq!(eyes.count(), 51);
        // Where events come, it was said that some were lost.
        assert!(eyes.whole > whole || eyes.polled() > 0);
    }
}

/// The last event of a test was noted.
static LAST: Notify = Notify::const_new();

fn announced(dirty: Arc<Dirty>) -> notify::Result<Box<dyn Watcher + Send>> {
    let watcher: RecommendedWatcher = notify::recommended_watcher(move |event: notify::Result<_>| {
        dirty.mark(&event);
        let event: notify::Event = event.unwrap();
        if event.paths.iter().any(|path| path.ends_with("last")) {
            LAST.notify_one();
        }
    })?;
    Ok(Box::new(watcher))
}

#[tokio::test]
async fn more_changed_folders_than_are_kept_apart() {
    const FOLDERS: usize = 4200;
    let mut eyes = Eyes::on(Machine { watcher: announced, ..DISK });
    for number in 0..FOLDERS {
        fs::create_dir(eyes.inside(number.to_string())).unwrap();
    }
    eyes.reconcile();
    let whole = eyes.whole;
    for number in 0..FOLDERS {
        eyes.put(format!("{number}/x.csv"), "abc");
    }
    eyes.put("last", "");
    soon(LAST.notified()).await;
    eyes.glance();
    assert_eq!((eyes.whole, eyes.count()), (whole + 1, FOLDERS + 1));
}

/// A file that has no name until it is complete (`O_TMPFILE`).
fn named_when_written(folder: &Path, name: &str) {
    use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
    let file = open(folder, OFlags::TMPFILE | OFlags::WRONLY, Mode::RUSR | Mode::WUSR).unwrap();
    rustix::io::write(&file, b"abc").unwrap();
    let place = format!("/proc/self/fd/{}", file.as_raw_fd());
    linkat(CWD, place, CWD, folder.join(name), AtFlags::SYMLINK_FOLLOW).unwrap();
}

/// Each of them is a `Create(File)` and no more: nothing is ever closed after writing.
#[tokio::test]
async fn a_hard_link_a_symbolic_link_and_a_fifo() {
    for machine in BOTH {
        let mut eyes = Eyes::on(machine);
        fs::write(eyes.outside("x.csv"), "abc").unwrap();
        fs::hard_link(eyes.outside("x.csv"), eyes.inside("hard.csv")).unwrap();
        named_when_written(&eyes.inside(""), "linked.csv");
        symlink(eyes.outside("x.csv"), eyes.inside("soft.csv")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            eyes.inside("fifo.csv"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        // A look that opened the FIFO would wait for its writer for ever.
        eyes.see_all().await;
        assert_eq!(eyes.at("hard.csv").unwrap().0, Sight::File);
        assert_eq!(eyes.at("linked.csv").unwrap().1.size, 3);
        assert_ne!(eyes.at("soft.csv").unwrap().0, Sight::File);
        assert_eq!(eyes.at("fifo.csv").unwrap().0, Sight::Other("a FIFO"));
    }
}

/// Nothing is told of it: the change has another path.
#[tokio::test]
async fn a_later_write_through_a_hard_link_outside() {
    for machine in BOTH {
        let mut eyes = Eyes::on(machine);
        fs::write(eyes.outside("x.csv"), "abc").unwrap();
        fs::hard_link(eyes.outside("x.csv"), eyes.inside("x.csv")).unwrap();
        eyes.see_all().await;
        let before = eyes.at("x.csv").unwrap().1;
        fs::write(eyes.outside("x.csv"), "abcdef").unwrap();
        eyes.reconcile();
        let after = eyes.at("x.csv").unwrap().1;
        assert_eq!((before.size, after.size, before.inode == after.inode), (3, 6, true));
    }
}

/// Only opening and closing are told of, and that only when it was opened in the inbox. SQLite writes the index of its
/// journal that way.
#[tokio::test]
async fn a_later_write_through_memory() {
    for machine in BOTH {
        // Where temporary files are kept in memory, such a write leaves no trace at all.
        let disk = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let mut eyes = Eyes::in_folder(machine, disk);
        let store = Store::open(&eyes.outside("state")).await.unwrap();
        let id = RunId::parse("20261130-230000-abcd").unwrap();
        let at = "2026-11-30T23:00:00Z".parse().unwrap();
        let run = NewRun::new(id.clone(), "w", Trigger::Manual, Digest::of("script"), "m", at);
        store.queue_run(run).await.unwrap();
        fs::hard_link(eyes.outside("state/tidemill.db-shm"), eyes.inside("x.bin")).unwrap();
        // What is in memory only is not told of again until it was written out.
        File::open(eyes.inside("x.bin")).unwrap().sync_all().unwrap();
        eyes.see_all().await;
        let before = eyes.at("x.bin").unwrap().1;
        store.append(&id, What::StateEntered { state: RunState::Running, reason: None }).await.unwrap();
        eyes.reconcile();
        let after = eyes.at("x.bin").unwrap().1;
        assert_eq!(before.size, after.size);
        assert_ne!(before.mtime_ns, after.mtime_ns);
        store.close().await;
    }
}

#[tokio::test]
async fn names_of_any_bytes() {
    const NAMES: [&[u8]; 6] = [b"\xff\xfe.csv", b"new\nline.csv", b"-rf", b"\x1b[31m", b" ", &[b'x'; 255]];
    for machine in BOTH {
        let mut eyes = Eyes::on(machine);
        for name in NAMES {
            eyes.put(OsStr::from_bytes(name), name);
        }
        eyes.see_all().await;
        for name in NAMES {
            let (sight, fingerprint) = eyes.at(OsStr::from_bytes(name)).unwrap();
            assert_eq!((sight, fingerprint.size), (Sight::File, name.len() as u64), "{name:?}");
        }
    }
}

/// A watch of it is told that the folder went, and is silent for ever.
#[tokio::test]
async fn an_inbox_that_was_deleted_and_made_again() {
    for machine in BOTH {
        let mut eyes = Eyes::on(machine);
        eyes.put("a/old.csv", "abc");
        eyes.see_all().await;
        fs::remove_dir_all(eyes.inside("")).unwrap();
        eyes.put("a/new.csv", "abc");
        eyes.glance();
        assert!(eyes.is_right());
        // It is heard again.
        eyes.put("a/newer.csv", "abc");
        eyes.see_all().await;
        assert!(eyes.at("a/newer.csv").is_some() && eyes.at("a/old.csv").is_none());
    }
}

#[tokio::test]
async fn an_inbox_in_whose_place_another_was_moved() {
    for machine in BOTH {
        let mut eyes = Eyes::on(machine);
        eyes.put("a/old.csv", "abc");
        eyes.see_all().await;
        fs::create_dir(eyes.outside("other")).unwrap();
        fs::write(eyes.outside("other/new.csv"), "abc").unwrap();
        fs::rename(eyes.inside(""), eyes.outside("gone")).unwrap();
        // While it is away nothing is taken for gone.
        eyes.glance();
        assert!(eyes.at("a/old.csv").is_some());
        fs::rename(eyes.outside("other"), eyes.inside("")).unwrap();
        eyes.glance();
        assert!(eyes.is_right() && eyes.at("new.csv").is_some());
        eyes.put("a/newer.csv", "abc");
        eyes.see_all().await;
    }
}

/// notify's own polling compares whole seconds and saw nothing.
#[tokio::test]
async fn another_content_of_the_same_size_in_the_same_second() {
    let second = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    let dated = |path, nanos| {
        let file = File::options().write(true).open(path).unwrap();
        file.set_modified(second + Duration::from_nanos(nanos)).unwrap();
    };
    for machine in BOTH {
        let mut eyes = Eyes::on(machine);
        eyes.put("x.csv", "abc");
        dated(eyes.inside("x.csv"), 1);
        eyes.see_all().await;
        let first = eyes.at("x.csv").unwrap().1;
        eyes.put("x.csv", "xyz");
        dated(eyes.inside("x.csv"), 2);
        eyes.see_all().await;
        let second = eyes.at("x.csv").unwrap().1;
        assert_eq!((first.size, second.mtime_ns - first.mtime_ns), (second.size, 1));
        // Another file with the same time to the nanosecond, as `cp -p` and `mv` leave it.
        fs::write(eyes.outside("x.csv"), "uvw").unwrap();
        dated(eyes.outside("x.csv"), 2);
        fs::rename(eyes.outside("x.csv"), eyes.inside("x.csv")).unwrap();
        eyes.see_all().await;
        let third = eyes.at("x.csv").unwrap().1;
        assert_eq!((second.size, second.mtime_ns), (third.size, third.mtime_ns));
        assert_ne!(second.inode, third.inode);
    }
}

/// A system with three watches.
struct Scarce {
    watcher: RecommendedWatcher,
    left: usize,
}

impl Watcher for Scarce {
    fn new<F: EventHandler>(handler: F, config: Config) -> notify::Result<Self> {
        Ok(Self { watcher: RecommendedWatcher::new(handler, config)?, left: 3 })
    }

    fn watch(&mut self, path: &Path, mode: RecursiveMode) -> notify::Result<()> {
        self.left = self.left.checked_sub(1).ok_or_else(|| Error::new(ErrorKind::MaxFilesWatch))?;
        self.watcher.watch(path, mode)
    }

    fn unwatch(&mut self, path: &Path) -> notify::Result<()> {
        self.left += 1;
        self.watcher.unwatch(path)
    }

    fn kind() -> WatcherKind {
        WatcherKind::Inotify
    }
}

fn scarce(dirty: Arc<Dirty>) -> notify::Result<Box<dyn Watcher + Send>> {
    let mark = move |event| dirty.mark(&event);
    Ok(Box::new(Scarce::new(mark, Config::default())?))
}

/// The rest of the tree goes unwatched, with one error.
#[tokio::test]
async fn more_folders_than_the_system_has_watches() {
    let mut eyes = Eyes::on(Machine { watcher: scarce, ..DISK });
    for number in 0..6 {
        eyes.put(format!("{number}/a/1.csv"), "abc");
    }
    eyes.see_all().await;
    assert!(eyes.polled() > 0);
    assert_eq!(eyes.warned(), ["trigger::no_watch"]);
    for number in 0..6 {
        eyes.put(format!("{number}/a/2.csv"), "abc");
        eyes.put(format!("{number}/new/3.csv"), "abc");
    }
    eyes.see_all().await;
    assert_eq!(eyes.count(), 18);
    assert!(eyes.warned().is_empty());
}

#[tokio::test]
async fn events_that_are_lost_and_nobody_says_so() {
    let mut eyes = Eyes::on(DEAF);
    eyes.put("a/1.csv", "abc");
    // Nothing tells of it ...
    assert!(eyes.glance().is_none());
    // ... until everything is looked at.
    eyes.reconcile();
    assert!(eyes.is_right());
    fs::remove_dir_all(eyes.inside("a")).unwrap();
    eyes.put("b/2.csv", "abc");
    eyes.reconcile();
    assert!(eyes.is_right() && eyes.count() == 1);
}
