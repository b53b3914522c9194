//! From any crash back to work: whatever step a process was killed at, nothing is lost and nothing is done twice.

use std::fs;
use std::path::Path;

use tidemill::event::What;
use tidemill::event::id::{Digest, RunId};
use tidemill::event::input::{Fingerprint, InputChange, InputFile, RawPath};
use tidemill::event::state::{InputState, RunState};
use tidemill::event::trigger::Trigger;
use tidemill::event::usage::Usage;
use tidemill::owner::Owner;
use tidemill::store::{Claim, NewRun, RunFilter, Store};
use tidemill::trigger::drop_folder::scan;

use super::harness::{Act, watching};
use crate::support::project::Project;

/// A run left in the middle by a process that died.
pub(super) async fn left_behind(project: &Project, attempts: usize, last: Option<What>) -> RunId {
    let (store, run) = claimed(project).await;
    for attempt in 1..=attempts {
        store.take(&run, &Owner::this_process().unwrap()).await.unwrap().unwrap();
        if attempt < attempts {
            let over = What::StateEntered { state: RunState::Queued, reason: None };
            store.append(&run, over).await.unwrap();
        }
    }
    let running = What::StateEntered { state: RunState::Running, reason: None };
    store.append(&run, running).await.unwrap();
    if let Some(last) = last {
        store.append(&run, last).await.unwrap();
    }
    store.close().await;
    run
}

/// The ledger and the disk with one file claimed for one run.
async fn claimed(project: &Project) -> (Store, RunId) {
    let store = Store::open(&project.path(".tidemill")).await.unwrap();
    let (change, taken) = ready(project, &store).await;
    take(project, &taken);
    let run = claim(&store, &change, taken.input).await;
    (store, run)
}

async fn ready(project: &Project, store: &Store) -> (InputChange, tidemill::store::Taken) {
    project.put("inbox/a.csv", "abc");
    let change = InputChange {
        path: RawPath::new("a.csv"),
        fingerprint: version(&project.path("inbox/a.csv")),
        state: InputState::Ready,
        reason: None,
    };
    let taken = store.ready(std::slice::from_ref(&change)).await.unwrap().remove(0);
    (change, taken)
}

pub(super) fn version(path: &Path) -> Fingerprint {
    scan::fingerprint(&fs::symlink_metadata(path).unwrap())
}

fn take(project: &Project, taken: &tidemill::store::Taken) {
    let to = project.path(".tidemill").join(&taken.claimed_path);
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::rename(project.path("inbox/a.csv"), to).unwrap();
}

pub(super) async fn claim(store: &Store, change: &InputChange, input: i64) -> RunId {
    let id = RunId::parse("20261130-230000-aaaa").unwrap();
    let run = NewRun {
        inputs: vec![InputFile { path: change.path.clone(), size: 3, digest: Digest::of("abc") }],
        input: Some(input),
        ..NewRun::new(
            id.clone(),
            "energy",
            Trigger::Drop,
            Digest::of("script"),
            "analyst",
            "2026-11-30T23:00:00Z".parse().unwrap(),
        )
    };
    let claim = Claim::of(input, change.fingerprint, Digest::of("abc"), vec![run]);
    store.claim(&[claim]).await.unwrap();
    id
}

/// Whatever stood there before: it ends with one run, and the file in `processed/`.
async fn comes_through(project: &Project, point: &str) {
    let mut watching = watching(project, &[]).await;
    watching.put_away().await;
    let store = watching.store.clone();
    watching.finish().await;
    let runs = store.runs(&RunFilter::default()).await.unwrap();
    assert_eq!(runs.len(), 1, "{point}");
    assert_eq!(runs[0].state, RunState::Succeeded, "{point}");
    assert_eq!(project.files("processed"), [Path::new("a.csv")], "{point}");
    assert_eq!(fs::read(project.path("processed/a.csv")).unwrap(), b"abc", "{point}");
    for folder in ["inbox", "failed", ".tidemill/claimed"] {
        assert!(project.files(folder).is_empty(), "{point}: {folder} {:?}", project.files(folder));
    }
}

#[tokio::test]
async fn a_process_killed_between_ready_and_moved_loses_nothing() {
    let project = Project::new();
    let store = Store::open(&project.path(".tidemill")).await.unwrap();
    ready(&project, &store).await;
    store.close().await;
    comes_through(&project, "ready").await;
}

#[tokio::test]
async fn a_process_killed_between_moved_and_claimed_loses_nothing() {
    let project = Project::new();
    let store = Store::open(&project.path(".tidemill")).await.unwrap();
    let (_, taken) = ready(&project, &store).await;
    take(&project, &taken);
    store.close().await;
    comes_through(&project, "moved").await;
}

#[tokio::test]
async fn a_process_killed_while_it_copied_to_another_file_system_leaves_no_second_file() {
    let project = Project::new();
    let store = Store::open(&project.path(".tidemill")).await.unwrap();
    let (_, taken) = ready(&project, &store).await;
    let to = project.path(".tidemill").join(&taken.claimed_path);
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::write(to.with_file_name(".taking-x"), "ab").unwrap();
    fs::copy(project.path("inbox/a.csv"), &to).unwrap();
    store.close().await;
    comes_through(&project, "copied").await;
}

#[tokio::test]
async fn a_file_put_back_never_replaces_a_new_one() {
    let project = Project::new();
    let store = Store::open(&project.path(".tidemill")).await.unwrap();
    let (_, taken) = ready(&project, &store).await;
    take(&project, &taken);
    project.put("inbox/a.csv", "a new one");
    store.close().await;
    let mut watching = watching(&project, &[]).await;
    let mut ends = vec![watching.put_away().await.1, watching.put_away().await.1];
    watching.finish().await;
    ends.sort();
    let again = format!("processed/a-again-{}.csv", taken.input);
    assert_eq!(ends, [Path::new(&again), Path::new("processed/a.csv")]);
    assert_eq!(fs::read(project.path(again)).unwrap(), b"abc");
}

#[tokio::test]
async fn a_link_that_came_in_its_place_costs_no_file() {
    for target in ["../outside.csv", "nowhere", "self"] {
        let project = Project::new().file("outside.csv", "abc");
        let store = Store::open(&project.path(".tidemill")).await.unwrap();
        let (_, taken) = ready(&project, &store).await;
        take(&project, &taken);
        let claimed = Path::new("../.tidemill").join(&taken.claimed_path);
        let target = if target == "self" { claimed.as_path() } else { Path::new(target) };
        std::os::unix::fs::symlink(target, project.path("inbox/a.csv")).unwrap();
        store.close().await;
        let mut watching = watching(&project, &[]).await;
        let end = watching.put_away().await.1;
        watching.finish().await;
        assert_eq!(end, Path::new(&format!("processed/a-again-{}.csv", taken.input)), "{target:?}");
        assert_eq!(fs::read(project.path(end)).unwrap(), b"abc", "{target:?}");
    }
}

#[tokio::test]
async fn a_process_killed_after_the_claim_runs_it_once() {
    let project = Project::new();
    claimed(&project).await.0.close().await;
    comes_through(&project, "claimed").await;
}

#[tokio::test]
async fn a_move_that_did_not_reach_the_disk_is_made_again() {
    let project = Project::new();
    let store = Store::open(&project.path(".tidemill")).await.unwrap();
    let (change, taken) = ready(&project, &store).await;
    claim(&store, &change, taken.input).await;
    store.close().await;
    comes_through(&project, "claimed, not moved").await;
}

#[tokio::test]
async fn a_process_killed_in_the_middle_of_a_run_starts_it_over() {
    let project = Project::new();
    left_behind(&project, 1, None).await;
    comes_through(&project, "running").await;
}

pub(super) fn ended(state: RunState) -> What {
    What::RunEnded { state, report: None, usage: Usage::default(), cost: None }
}

#[tokio::test]
async fn a_process_killed_after_the_run_ended_puts_the_file_away() {
    let project = Project::new();
    left_behind(&project, 1, Some(ended(RunState::Succeeded))).await;
    // Put away while the daemon opens: nobody runs it again.
    let watching = watching(&project, &[Act::End(RunState::Failed)]).await;
    watching.finish().await;
    assert_eq!(project.files("processed"), [Path::new("a.csv")]);
}

#[tokio::test]
async fn a_process_killed_while_it_put_a_file_away_knows_where_it_went() {
    for moved in [false, true] {
        let project = Project::new();
        let run = left_behind(&project, 1, Some(ended(RunState::Succeeded))).await;
        let store = Store::open(&project.path(".tidemill")).await.unwrap();
        let input = store.run(&run).await.unwrap().unwrap().input.unwrap();
        store.bound_for(input, Path::new("processed/a.csv")).await.unwrap();
        if moved {
            fs::create_dir(project.path("processed")).unwrap();
            fs::rename(store.claimed(input).await.unwrap().unwrap(), project.path("processed/a.csv"))
                .unwrap();
        }
        store.close().await;
        let watching = watching(&project, &[]).await;
        let row = watching.store.input(input).await.unwrap().unwrap();
        assert_eq!(row.state, InputState::Done, "moved: {moved}");
        watching.finish().await;
        assert_eq!(project.files("processed"), [Path::new("a.csv")], "moved: {moved}");
    }
}

#[tokio::test]
async fn a_run_that_published_before_the_crash_is_not_done_again() {
    let project = Project::new();
    let published = What::Published { folder: "outbox/energy/a-1".to_owned(), artifacts: Vec::new() };
    let run = left_behind(&project, 1, Some(published)).await;
    project.put(format!(".tidemill/runs/{run}/artifacts/0/a.txt"), "taken out");
    let watching = watching(&project, &[Act::End(RunState::Failed)]).await;
    let row = watching.store.run(&run).await.unwrap().unwrap();
    assert_eq!(row.state, RunState::Succeeded);
    watching.finish().await;
    assert!(project.files(".tidemill/runs").is_empty(), "what it needed while it worked");
    assert_eq!(project.files("processed"), [Path::new("a.csv")]);
}

#[tokio::test]
async fn a_run_that_brings_the_process_down_again_and_again_at_one_point_fails() {
    let project = Project::new();
    let run = left_behind(&project, 10, None).await;
    let watching = watching(&project, &[]).await;
    let row = watching.store.run(&run).await.unwrap().unwrap();
    assert_eq!(row.state, RunState::Failed);
    assert_eq!(row.report.unwrap().message, "interrupted 10 times without coming any further");
    watching.finish().await;
    let reason = fs::read_to_string(project.path("failed/a.csv.reason.txt")).unwrap();
    assert!(reason.contains("without coming any further [run::interrupted]"), "{reason}");
}

#[tokio::test]
async fn a_run_started_by_hand_is_left_to_who_started_it() {
    let project = Project::new();
    let store = Store::open(&project.path(".tidemill")).await.unwrap();
    let run = NewRun::new(
        RunId::parse("20261130-230000-hand").unwrap(),
        "energy",
        Trigger::Manual,
        Digest::of("script"),
        "analyst",
        "2026-11-30T23:00:00Z".parse().unwrap(),
    );
    store.queue_run(run.clone()).await.unwrap();
    let mut watching = watching(&project, &[]).await;
    project.put("inbox/a.csv", "abc");
    watching.put_away().await;
    watching.finish().await;
    assert_eq!(store.run(&run.id).await.unwrap().unwrap().state, RunState::Queued);
}
