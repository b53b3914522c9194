//! Tables of scans and what they say.

use super::*;
use crate::trigger::drop_folder::judge::blocked;
use crate::trigger::drop_folder::looked::Looked;
use crate::trigger::drop_folder::scan::{Id, Sight};
use crate::workflow::trigger::Drop;

const QUIET: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(3);

fn found(path: &str, size: u64, sight: Sight) -> Found {
    Found {
        path: RawPath::new(path),
        sight,
        fingerprint: Fingerprint { size, mtime_ns: 0, inode: 1, device: DISK },
    }
}

const DISK: u64 = 1;

fn root() -> Root {
    Root::Present(Id { device: DISK, inode: 1 })
}

fn scan(found: Vec<Found>, unread: &[&str]) -> Scan {
    let mut looked = Looked::default();
    looked.read(Path::new(""), Depth::Subtree);
    for folder in unread {
        looked.leave(Path::new(folder));
    }
    Scan { scope: Scope::All, root: root(), found, looked }
}

/// A look at the entries of one folder.
fn part(folder: &str, found: Vec<Found>) -> Scan {
    let mut looked = Looked::default();
    looked.read(Path::new(folder), Depth::Entries);
    Scan { scope: Scope::none(), root: root(), found, looked }
}

/// What each of these scans, a second apart, says: `path state`, in any order of the paths.
fn story(scans: &[Scan]) -> Vec<Vec<String>> {
    let routes = Routes::new([("all", &Drop::new("**/*.csv"))]).expect("a good glob");
    let mut settling = Settling::new(QUIET, PATIENCE);
    let mut told = Vec::new();
    for (second, scan) in (0..).zip(scans) {
        let observed = settling.observe(scan, &routes, Duration::from_secs(second));
        let mut lines: Vec<String> = observed
            .changes
            .iter()
            .chain(observed.parcels.iter().flat_map(Parcel::changes))
            .map(|change| format!("{} {}", change.path.display(), change.state))
            .collect();
        lines.sort();
        told.push(lines);
    }
    told
}

#[test]
fn quiet_is_counted_from_the_last_change_that_was_seen() {
    let sizes = [1, 1, 2, 2, 2];
    let scans = sizes.map(|size| scan(vec![found("a.csv", size, Sight::File)], &[]));
    let told = story(&scans);
    assert_eq!(told, [vec!["a.csv seen"], vec![], vec!["a.csv settling"], vec![], vec!["a.csv ready"]]);
}

#[test]
fn what_may_not_be_read_is_blocked_and_comes_back() {
    const EACCES: i32 = 13;
    let folder = || found("f", 0, Sight::Unreadable(EACCES));
    let file = || found("f/a.csv", 1, Sight::File);
    let told = story(&[
        scan(vec![file()], &[]),
        scan(vec![folder()], &["f"]),
        scan(vec![folder()], &["f"]),
        scan(vec![file()], &[]),
    ]);
    // The file is not gone while nobody can see it.
    assert_eq!(told, [vec!["f/a.csv seen"], vec!["f blocked"], vec![], vec!["f gone", "f/a.csv ready"]]);
    assert_eq!(blocked(EACCES), "Permission denied (os error 13)");
}

#[test]
fn a_file_that_was_refused_is_tried_again_later() {
    let routes = Routes::new([("all", &Drop::new("*"))]).expect("a good glob");
    let mut settling = Settling::new(QUIET, PATIENCE);
    let scan = scan(vec![found("a.csv", 1, Sight::File)], &[]);
    let ready = |settling: &mut Settling, second| {
        let observed = settling.observe(&scan, &routes, Duration::from_secs(second));
        observed.parcels.len()
    };
    assert_eq!((ready(&mut settling, 0), ready(&mut settling, 2)), (0, 1));
    let change = InputChange {
        path: RawPath::new("a.csv"),
        fingerprint: scan.found[0].fingerprint,
        state: InputState::Blocked,
        reason: Some("locked".to_owned()),
    };
    let now = Duration::from_secs(2);
    settling.refused(change, Settling::RETRY, now);
    assert_eq!(settling.due(), Some(now + Settling::RETRY));
    assert_eq!((ready(&mut settling, 11), ready(&mut settling, 12)), (0, 1));
}

#[test]
fn what_waits_in_an_absent_inbox_is_not_gone() {
    let absent = Scan { root: Root::Absent, ..scan(Vec::new(), &[]) };
    let there = || scan(vec![found("a.csv", 1, Sight::File)], &[]);
    let told = story(&[there(), absent, there()]);
    assert_eq!(told, [vec!["a.csv seen"], vec!["a.csv root_absent"], vec!["a.csv ready", "a.csv settling"]]);
}

#[test]
fn the_one_that_waited_longest_is_ready_first() {
    let routes = Routes::new([("all", &Drop::new("*"))]).expect("a good glob");
    let mut settling = Settling::new(QUIET, PATIENCE);
    let late = || found("a.csv", 1, Sight::File);
    let early = || found("b.csv", 1, Sight::File);
    settling.observe(&scan(vec![early()], &[]), &routes, Duration::ZERO);
    settling.observe(&scan(vec![late(), early()], &[]), &routes, Duration::from_secs(1));
    let observed = settling.observe(&scan(vec![late(), early()], &[]), &routes, Duration::from_secs(9));
    let order: Vec<String> = observed.parcels.iter().map(|parcel| parcel.files[0].path.display()).collect();
    assert_eq!(order, ["b.csv", "a.csv"]);
}

#[test]
fn what_was_not_looked_at_is_not_gone() {
    let both = || vec![found("a/1.csv", 1, Sight::File), found("b/1.csv", 1, Sight::File)];
    let told = story(&[scan(both(), &[]), part("a", vec![]), part("b", both().split_off(1))]);
    assert_eq!(told, [vec!["a/1.csv seen", "b/1.csv seen"], vec!["a/1.csv gone"], vec!["b/1.csv ready"]]);
}

#[test]
fn files_that_are_due_ask_for_their_folders_only() {
    let routes = Routes::new([("all", &Drop::new("**/*"))]).expect("a good glob");
    let mut settling = Settling::new(QUIET, PATIENCE);
    settling.observe(&part("a", vec![found("a/1.csv", 1, Sight::File)]), &routes, Duration::ZERO);
    settling.observe(&part("b", vec![found("b/2.csv", 1, Sight::File)]), &routes, Duration::from_secs(1));
    assert!(settling.due_folders(Duration::from_secs(1)).is_none());
    assert_eq!(settling.due_folders(QUIET).folders(), [("a".into(), Depth::Entries)]);
    assert_eq!(settling.due_folders(Duration::from_secs(3)).count(), Some(2));
}

#[test]
fn an_inbox_that_lies_empty_on_another_disk_is_doubted_until_it_stays_so() {
    let there = || scan(vec![found("a.csv", 1, Sight::File)], &[]);
    let unmounted = || Scan { root: Root::Present(Id { device: DISK + 1, inode: 1 }), ..scan(vec![], &[]) };
    let told = story(&[there(), unmounted(), there(), unmounted(), unmounted(), unmounted(), unmounted()]);
    let gone = vec!["a.csv gone"];
    // It is back after a second, goes again, and is given up after `PATIENCE`.
    let absent = vec!["a.csv root_absent"];
    let back = vec!["a.csv ready", "a.csv settling"];
    let seen = vec!["a.csv seen"];
    assert_eq!(told, [seen, absent.clone(), back, absent, vec![], vec![], gone.clone()]);
    // On its own disk an empty inbox is empty.
    assert_eq!(story(&[there(), scan(vec![], &[])])[1], gone);
}

#[test]
fn a_folder_that_stays_locked_is_tried_again_at_times() {
    let routes = Routes::new([("all", &Drop::new("**/*"))]).expect("a good glob");
    let mut settling = Settling::new(QUIET, PATIENCE);
    let locked = scan(vec![found("f", 0, Sight::Unreadable(13))], &["f"]);
    for (second, due) in [(0, 10), (9, 10), (10, 20), (11, 20)] {
        settling.observe(&locked, &routes, Duration::from_secs(second));
        assert_eq!(settling.due(), Some(Duration::from_secs(due)));
    }
}
