//! What fails again and again.

use std::sync::Arc;

use tidemill::event::id::{Digest, RunId};
use tidemill::event::input::{InputFile, RawPath};
use tidemill::event::state::RunState;
use tidemill::store::{NewRun, RunRow, Store};

use super::work::{Act, Mill, new_run, store};
use crate::support::clock::ManualClock;
use crate::support::project::Project;

fn on(id: &str, content: &str) -> NewRun {
    let input = InputFile { path: RawPath::new("a.csv"), size: 3, digest: Digest::of(content) };
    NewRun { inputs: vec![input], ..new_run(id, "energy") }
}

/// Runs these, one after the other, each failing if it is begun.
async fn fail(project: &Project, clock: &Arc<ManualClock>, runs: Vec<NewRun>) -> Vec<RunRow> {
    fail_by("run::told", project, clock, runs).await
}

/// The same by an error of this code.
async fn fail_by(
    code: &'static str,
    project: &Project,
    clock: &Arc<ManualClock>,
    runs: Vec<NewRun>,
) -> Vec<RunRow> {
    let before = store(project, clock).await;
    let acts = vec![Act::Err(code); runs.len()];
    let mill = Mill::start(project, clock, Vec::new(), &acts).await;
    let mut rows = Vec::new();
    for run in runs {
        let id = run.id.clone();
        before.queue_run(run).await.unwrap();
        rows.push(mill.end_of(id.as_str()).await);
    }
    mill.finish().await;
    rows
}

fn code(row: &RunRow) -> &str {
    row.report.as_ref().unwrap().code.as_str()
}

async fn held(store: &Store) -> Vec<Vec<String>> {
    let held = store.quarantined(3).await.unwrap();
    held.into_iter().map(|runs| runs.into_iter().map(|run| run.id.to_string()).collect()).collect()
}

#[tokio::test]
async fn what_no_key_was_there_for_says_nothing_of_the_work() {
    let project = Project::new();
    let clock = Arc::new(ManualClock::new());
    let runs = ["run-1", "run-2", "run-3", "run-4"].map(|id| on(id, "abc"));
    let rows = fail_by("model::no_key", &project, &clock, runs.to_vec()).await;
    assert!(rows.iter().all(|row| code(row) == "model::no_key"), "{rows:?}");
    assert!(held(&store(&project, &clock).await).await.is_empty());
}

#[tokio::test]
async fn the_fourth_run_of_the_same_is_not_begun_and_says_why() {
    let project = Project::new();
    let clock = Arc::new(ManualClock::new());
    let runs = ["run-1", "run-2", "run-3", "run-4", "run-5"].map(|id| on(id, "abc"));
    let rows = fail(&project, &clock, runs.to_vec()).await;
    assert!(rows[..3].iter().all(|row| code(row) == "run::told"));
    for row in &rows[3..] {
        assert_eq!((row.state, code(row), row.started_at), (RunState::Failed, "queue::quarantined", None));
        let report = row.report.as_ref().unwrap();
        let stories =
            ["run-3", "run-2", "run-1"].map(|id| format!("run {id} failed: it went wrong [run::told]"));
        assert_eq!(report.causes, [stories.join("\n")]);
        assert!(report.help.as_ref().unwrap().contains(&format!("tidemill retry {}", row.id)));
    }
    let store = store(&project, &clock).await;
    assert_eq!(held(&store).await, [["run-3", "run-2", "run-1"]]);
    // A person may, and another input, another script, or nothing in particular is another matter.
    let other_script = NewRun { script: Digest::of("mended"), ..on("run-8", "abc") };
    let retried = NewRun { retry_of: Some(RunId::parse("run-5").unwrap()), ..on("run-6", "abc") };
    let rows = fail(&project, &clock, vec![retried, on("run-7", "other"), other_script]).await;
    assert!(rows.iter().all(|row| code(row) == "run::told"), "{rows:?}");
    assert!(held(&store).await.is_empty(), "the script changed");
}

#[tokio::test]
async fn a_success_in_between_and_runs_on_nothing_count_from_the_start() {
    let project = Project::new();
    let clock = Arc::new(ManualClock::new());
    fail(&project, &clock, vec![on("run-1", "abc"), on("run-2", "abc")]).await;
    let before = store(&project, &clock).await;
    before.queue_run(on("run-3", "abc")).await.unwrap();
    let mill = Mill::start(&project, &clock, Vec::new(), &[]).await;
    assert_eq!(mill.end_of("run-3").await.state, RunState::Succeeded);
    mill.finish().await;
    let rows = fail(&project, &clock, ["run-4", "run-5", "run-6"].map(|id| on(id, "abc")).to_vec()).await;
    assert!(rows.iter().all(|row| code(row) == "run::told"));
    let rows =
        fail(&project, &clock, ["n-1", "n-2", "n-3", "n-4"].map(|id| new_run(id, "energy")).to_vec()).await;
    assert!(rows.iter().all(|row| code(row) == "run::told"));
}

#[tokio::test]
async fn it_can_be_turned_off() {
    let project = Project::new().config("[watch]\nquarantine = 0\n");
    let clock = Arc::new(ManualClock::new());
    let runs = ["run-1", "run-2", "run-3", "run-4"].map(|id| on(id, "abc"));
    let rows = fail(&project, &clock, runs.to_vec()).await;
    assert!(rows.iter().all(|row| code(row) == "run::told"));
}
