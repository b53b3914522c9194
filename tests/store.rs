//! The store: what was recorded is there, in order, whoever else writes, and whatever happened to the disk.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod conformance;

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use tidemill::event::finish::Finish;
use tidemill::event::id::{Digest, RunId};
use tidemill::event::input::{Fingerprint, InputChange, InputFile, RawPath};
use tidemill::event::payload::Payload;
use tidemill::event::state::{InputState, RunState};
use tidemill::event::trigger::Trigger;
use tidemill::event::usage::{Cost, Usage};
use tidemill::event::{Event, What};
use tidemill::store::{Claim, NewRun, RunFilter, Store};

fn state() -> TempDir {
    TempDir::with_prefix("tidemill-store-").unwrap()
}

fn new_run(id: &str, workflow: &str) -> NewRun {
    NewRun {
        inputs: vec![InputFile { path: RawPath::new("a.csv"), size: 3, digest: Digest::of("abc") }],
        ..NewRun::new(
            RunId::parse(id).unwrap(),
            workflow,
            Trigger::Manual,
            Digest::of("script"),
            "analyst",
            "2026-11-30T23:00:00.123456Z".parse().unwrap(),
        )
    }
}

fn entered(state: RunState) -> What {
    What::StateEntered { state, reason: None }
}

fn responded(tokens: u64, cost: Option<f64>) -> What {
    What::ModelResponded {
        turn: 1,
        text: Payload::Inline("hello".to_owned()),
        calls: Vec::new(),
        items: Payload::default(),
        finish: Finish::Stop,
        usage: Usage { input_tokens: tokens, ..Usage::default() },
        cost: cost.map(Cost::from_usd),
        millis: 1,
        model: None,
    }
}

fn change(path: &str, state: InputState) -> InputChange {
    InputChange {
        path: RawPath::new(path),
        fingerprint: Fingerprint { size: 3, mtime_ns: -1, inode: u64::MAX, device: 7 },
        state,
        reason: Some(format!("is {state}")),
    }
}

fn damage(folder: &Path, bytes: &[u8]) {
    fs::write(folder.join(Store::FILE), bytes).unwrap();
}

async fn queued(folder: &Path, id: &str) -> (Store, RunId) {
    let store = Store::open(folder).await.unwrap();
    let run = new_run(id, "energy");
    store.queue_run(run.clone()).await.unwrap();
    (store, run.id)
}

#[tokio::test]
async fn events_come_back_as_they_were_appended() {
    let folder = state();
    let (store, run) = queued(folder.path(), "20261130-230000-aaaa").await;
    let mut followed = store.follow();
    let appended = store.append(&run, entered(RunState::Preparing)).await.unwrap();
    assert_eq!(followed.recv().await.unwrap(), appended);
    drop(store);

    let store = Store::open(folder.path()).await.unwrap();
    let events = store.events(&run, 0, 100).await.unwrap();
    assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(events[2], appended);
    assert!(matches!(events[0].what, What::RunQueued { .. }));
    assert_eq!(events[1].what, entered(RunState::Queued));
    assert_eq!(store.events(&run, 1, 1).await.unwrap(), events[1..2]);
}

#[tokio::test]
async fn the_row_of_a_run_is_a_fold_over_its_events() {
    let folder = state();
    let (store, run) = queued(folder.path(), "20261130-230000-aaaa").await;
    let row = store.run(&run).await.unwrap().unwrap();
    assert_eq!((row.state, row.turns, row.cost), (RunState::Queued, 0, Some(Cost::ZERO)));
    assert_eq!(row.queued_at.to_string(), "2026-11-30T23:00:00.123456Z");

    store.append(&run, entered(RunState::Preparing)).await.unwrap();
    store.append(&run, responded(10, Some(0.25))).await.unwrap();
    store.append(&run, responded(5, Some(0.5))).await.unwrap();
    let row = store.run(&run).await.unwrap().unwrap();
    assert_eq!((row.state, row.turns), (RunState::Preparing, 2));
    assert_eq!((row.usage.input_tokens, row.cost), (15, Some(Cost::from_usd(0.75))));
    assert!(row.started_at.is_some() && row.ended_at.is_none());

    let ended = What::RunEnded { state: RunState::Succeeded, report: None, usage: row.usage, cost: row.cost };
    store.append(&run, ended).await.unwrap();
    let row = store.run(&run).await.unwrap().unwrap();
    assert_eq!(row.state, RunState::Succeeded);
    assert!(row.ended_at.is_some());
    let late = store.append(&run, responded(1, None)).await.unwrap_err();
    assert_eq!(late.code(), "store::run_ended");
}

#[tokio::test]
async fn one_unknown_price_makes_the_cost_unknown() {
    let folder = state();
    let (store, run) = queued(folder.path(), "20261130-230000-aaaa").await;
    store.append(&run, responded(10, None)).await.unwrap();
    store.append(&run, responded(10, Some(0.5))).await.unwrap();
    assert_eq!(store.run(&run).await.unwrap().unwrap().cost, None);
}

#[tokio::test]
async fn two_processes_never_give_one_place_twice() {
    const EACH: usize = 40;
    let folder = state();
    let (first, run) = queued(folder.path(), "20261130-230000-aaaa").await;
    let second = Store::open(folder.path()).await.unwrap();
    let write = |store: Store, run: RunId| async move {
        let mut places = Vec::new();
        for _ in 0..EACH {
            places.push(store.append(&run, responded(1, Some(0.0))).await.unwrap().seq);
        }
        places
    };
    let (mut ours, theirs) =
        tokio::join!(write(first.clone(), run.clone()), tokio::spawn(write(second, run.clone())));
    ours.extend(theirs.unwrap());
    ours.sort_unstable();
    assert_eq!(ours, (3..3 + 2 * EACH as u64).collect::<Vec<_>>());
    let log: Vec<Event> = first.events(&run, 0, 1000).await.unwrap();
    assert!(log.iter().map(|event| event.seq).eq(1..=log.len() as u64));
    let row = first.run(&run).await.unwrap().unwrap();
    assert_eq!(row.turns as usize, 2 * EACH);
}

#[tokio::test]
async fn a_new_store_may_be_opened_by_many_at_once() {
    let folder = state();
    let opened = (0..6).map(|_| {
        let folder = folder.path().to_owned();
        tokio::spawn(async move { Store::open(&folder).await.map(drop) })
    });
    for opening in opened.collect::<Vec<_>>() {
        opening.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn lists_show_the_newest_first_and_filter() {
    let folder = state();
    let store = Store::open(folder.path()).await.unwrap();
    for (id, workflow) in [("20261130-1", "energy"), ("20261130-2", "invoices"), ("20261130-3", "energy")] {
        store.queue_run(new_run(id, workflow)).await.unwrap();
    }
    let ids = async |filter: RunFilter| -> Vec<String> {
        let rows = store.runs(&filter).await.unwrap();
        rows.iter().map(|row| row.id.to_string()).collect()
    };
    assert_eq!(ids(RunFilter::default()).await, ["20261130-3", "20261130-2", "20261130-1"]);
    let energy = RunFilter { workflow: Some("energy".to_owned()), limit: Some(1), ..RunFilter::default() };
    assert_eq!(ids(energy).await, ["20261130-3"]);
    let failed = RunFilter { state: Some(RunState::Failed), ..RunFilter::default() };
    assert!(ids(failed).await.is_empty());
}

#[tokio::test]
async fn a_run_is_found_by_the_part_of_its_id_that_is_its_own() {
    let folder = state();
    let store = Store::open(folder.path()).await.unwrap();
    for id in ["20261130-230000-k3xq", "20261130-230000-b7zw"] {
        store.queue_run(new_run(id, "energy")).await.unwrap();
    }
    assert_eq!(store.resolve("k3xq").await.unwrap().id.as_str(), "20261130-230000-k3xq");
    assert_eq!(store.resolve("20261130-230000-b").await.unwrap().id.as_str(), "20261130-230000-b7zw");
    let several = store.resolve("20261130").await.unwrap_err();
    assert_eq!(several.code(), "usage::ambiguous_run");
    let unknown = store.resolve("20261130-230000-k3xx").await.unwrap_err();
    assert_eq!(unknown.code(), "usage::unknown_run");
    assert!(unknown.advice().unwrap().contains("`20261130-230000-k3xq`"), "{unknown:?}");
    assert_eq!(store.resolve("%\u{1b}[31m").await.unwrap_err().code(), "usage::unknown_run");
}

#[tokio::test]
async fn long_text_goes_to_the_blobs_and_comes_back() {
    let folder = state();
    let store = Store::open(folder.path()).await.unwrap();
    let short = store.payload("short").await.unwrap();
    assert_eq!(short, Payload::Inline("short".to_owned()));
    let text = "\u{1f30a}".repeat(100_000);
    let long = store.payload(&text).await.unwrap();
    let Payload::Blob { digest, size, .. } = &long else {
        panic!("{long:?}");
    };
    assert_eq!((*size, digest), (400_000, &Digest::of(&text)));
    assert_eq!(store.text(&long).await.unwrap(), text);
    let limit = store.blobs().read(digest, 10).await.unwrap_err();
    assert_eq!(limit.code(), "store::blob_too_long");
}

#[tokio::test]
async fn a_damaged_blob_is_never_served_and_written_again() {
    let folder = state();
    let store = Store::open(folder.path()).await.unwrap();
    let digest = store.blobs().put("content").await.unwrap();
    let path = store.blobs().path(&digest);
    fs::write(&path, "con").unwrap();
    // And what a process that was killed in between leaves behind:
    fs::write(folder.path().join("blobs/.new-abc"), "conte").unwrap();
    let damaged = store.blobs().read(&digest, 100).await.unwrap_err();
    assert_eq!(damaged.code(), "store::corrupt_blob");
    assert_eq!(store.blobs().put("content").await.unwrap(), digest);
    assert_eq!(store.blobs().read(&digest, 100).await.unwrap(), b"content");
    let missing = store.blobs().read(&Digest::of("other"), 100).await.unwrap_err();
    assert_eq!(missing.code(), "store::no_blob");
}

#[tokio::test]
async fn a_file_is_kept_by_its_content() {
    let folder = state();
    let store = Store::open(folder.path()).await.unwrap();
    let file = folder.path().join("a\nb");
    fs::write(&file, "content").unwrap();
    assert_eq!(store.blobs().put_file(&file).await.unwrap(), (Digest::of("content"), 7));
    fs::remove_file(&file).unwrap();
    let gone = store.blobs().put_file(&file).await.unwrap_err();
    assert!(gone.message().ends_with("a\\nb"), "{gone}");
}

#[tokio::test]
async fn a_database_that_is_none_is_left_as_it_is() {
    let folder = state();
    damage(folder.path(), b"this was never a database, and it is long enough to be looked at: 0123456789");
    let error = Store::open(folder.path()).await.unwrap_err();
    assert_eq!(error.code(), "store::corrupt");
    assert!(fs::read(folder.path().join(Store::FILE)).unwrap().starts_with(b"this was never"));
}

#[tokio::test]
async fn a_damaged_database_is_refused_and_left_as_it_is() {
    let folder = state();
    queued(folder.path(), "20261130-230000-aaaa").await.0.close().await;
    let file = folder.path().join(Store::FILE);
    let mut bytes = fs::read(&file).unwrap();
    // The page with the schema, behind the file's header.
    bytes[100..4096].fill(0xa5);
    fs::write(&file, &bytes).unwrap();
    let error = match Store::open(folder.path()).await {
        Err(error) => error,
        Ok(store) => store.runs(&RunFilter::default()).await.unwrap_err(),
    };
    assert_eq!(error.code(), "store::corrupt", "{error:?}");
    assert_eq!(fs::read(&file).unwrap(), bytes);
}

#[tokio::test]
async fn a_database_that_is_gone_is_not_replaced_by_an_empty_one() {
    for folder_of_files in ["claimed/1", "runs/20261130-230000-aaaa"] {
        let folder = state();
        queued(folder.path(), "20261130-230000-aaaa").await.0.close().await;
        fs::remove_file(folder.path().join(Store::FILE)).unwrap();
        fs::create_dir_all(folder.path().join(folder_of_files)).unwrap();
        let error = Store::open(folder.path()).await.unwrap_err();
        assert_eq!(error.code(), "store::missing", "{error:?}");
        assert!(!folder.path().join(Store::FILE).exists());
        // With nothing that it knew of, there is nothing to lose.
        fs::remove_dir_all(folder.path().join(folder_of_files)).unwrap();
        Store::open(folder.path()).await.unwrap();
    }
}

#[tokio::test]
async fn an_id_that_is_taken_is_said_to_be() {
    let folder = state();
    let (store, run) = queued(folder.path(), "20261130-230000-aaaa").await;
    let again = store.queue_run(new_run(run.as_str(), "other")).await.unwrap_err();
    assert_eq!(again.code(), "store::id_taken");
    assert_eq!(store.run(&run).await.unwrap().unwrap().workflow, "energy");
}

#[tokio::test]
async fn a_newer_database_is_refused_and_left_as_it_is() {
    let folder = state();
    queued(folder.path(), "20261130-230000-aaaa").await.0.close().await;
    let file = folder.path().join(Store::FILE);
    let mut bytes = fs::read(&file).unwrap();
    // `user_version` in the header, see the file format of SQLite.
    bytes[60..64].copy_from_slice(&99u32.to_be_bytes());
    fs::write(&file, &bytes).unwrap();
    let error = Store::open(folder.path()).await.unwrap_err();
    assert_eq!(error.code(), "store::newer", "{error:?}");
    assert!(error.message().contains("format 99"), "{error}");
    assert_eq!(fs::read(&file).unwrap(), bytes);
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_says_so() {
    let folder = state();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = Store::open(&file.join(".tidemill")).await.unwrap_err();
    assert_eq!(error.code(), "store::unwritable");
}

#[tokio::test]
async fn the_ledger_keeps_every_change_with_its_reason() {
    let folder = state();
    let store = Store::open(folder.path()).await.unwrap();
    let path = RawPath::new("energy/a.csv");
    for state in [InputState::Seen, InputState::Settling, InputState::Settling, InputState::Gone] {
        store.record(&[change("energy/a.csv", state)]).await.unwrap();
    }
    store.record(&[change("energy/a.csv", InputState::Seen)]).await.unwrap();
    let history = store.history(&path).await.unwrap();
    let states: Vec<Vec<InputState>> =
        history.iter().map(|(_, changes)| changes.iter().map(|change| change.to).collect()).collect();
    assert_eq!(
        states,
        [vec![InputState::Seen, InputState::Settling, InputState::Gone], vec![InputState::Seen]]
    );
    let row = &history[0].0;
    assert_eq!(row.fingerprint, change("", InputState::Gone).fingerprint);
    assert_eq!(row.reason.as_deref(), Some("is gone"));
}

#[tokio::test]
async fn a_file_is_claimed_once_with_all_its_runs_or_not_at_all() {
    let folder = state();
    let store = Store::open(folder.path()).await.unwrap();
    let taken = store.ready(&[change("a.csv", InputState::Ready)]).await.unwrap();
    let input = taken[0].input;
    assert_eq!(taken[0].claimed_path, Path::new(&format!("claimed/{input}/a.csv")));
    let version = change("", InputState::Ready).fingerprint;
    let claim = |runs: Vec<NewRun>| Claim::of(input, version, Digest::of("abc"), runs);
    let run = |id: &str, workflow: &str| NewRun {
        input: Some(input),
        by_hand: false,
        trigger: Trigger::Drop,
        ..new_run(id, workflow)
    };
    // The second run breaks the rule "one per workflow": nothing of the claim stands.
    let twice = vec![run("20261130-1", "energy"), run("20261130-2", "energy")];
    assert!(store.claim(&[claim(twice)]).await.is_err());
    assert!(store.runs(&RunFilter::default()).await.unwrap().is_empty());
    assert_eq!(store.input(input).await.unwrap().unwrap().state, InputState::Ready);

    let runs = vec![run("20261130-1", "energy"), run("20261130-2", "other")];
    store.claim(&[claim(runs.clone())]).await.unwrap();
    let row = store.input(input).await.unwrap().unwrap();
    assert_eq!(
        (row.state, row.workflows),
        (InputState::Claimed, vec!["energy".to_owned(), "other".to_owned()])
    );
    assert_eq!(store.waiting(10).await.unwrap().len(), 2);
    let again = store.claim(&[claim(runs)]).await.unwrap_err();
    assert_eq!(again.code(), "store::claimed_twice");
}
