//! Runs done over.

use std::sync::Arc;

use tidemill::event::id::{Digest, RunId};
use tidemill::event::input::{InputFile, RawPath};
use tidemill::event::state::RunState;
use tidemill::event::trigger::Trigger;
use tidemill::event::{Event, What};
use tidemill::run::ended::tidy;
use tidemill::run::folder::RunFolder;
use tidemill::run::retry::{By as Script, retry};
use tidemill::store::{NewRun, RunRow};
use tidemill::workflow::queueing::Queueing;
use tidemill::workflow::trigger::{Batch, By, Drop};

use super::work::{Act, Mill, ended, new_run, queue, route, store};
use crate::support::clock::ManualClock;
use crate::support::project::Project;

const SCRIPT: &str = r#"local mill = require "tidemill"
return mill.workflow {
  name = "energy", sandbox = "none", agent = { model = "actor" }, prompt = "Work.",
  triggers = { mill.drop { glob = "energy/*.csv" } },
}
"#;
const MODELS: &str = "[models.actor]\nprovider = \"scripted\"\nscript = \"models/actor.lua\"\n";

fn project() -> Project {
    Project::new().config(MODELS).workflow("energy.lua", SCRIPT).file("models/actor.lua", "return {}")
}

/// A project with a file whose run failed.
async fn failed() -> (Project, Arc<ManualClock>, RunRow) {
    let project = project().file("inbox/energy/a.csv", "abc");
    let clock = Arc::new(ManualClock::new());
    let mut dropped = route("energy", Queueing::default());
    dropped.drops = vec![Drop::new("energy/*.csv")];
    let mut mill = Mill::start(&project, &clock, vec![dropped], &[Act::Err("image::build_failed")]).await;
    let run = mill.begun().await.id;
    let row = mill.end_of(run.as_str()).await;
    mill.finish().await;
    assert_eq!(project.files("failed").len(), 2);
    (project, clock, row)
}

#[tokio::test]
async fn a_file_that_was_put_away_is_worked_on_once_more() {
    let (project, clock, over) = failed().await;
    let (opened, store) = (project.open(), store(&project, &clock).await);
    let run = retry(&opened, &store, clock.as_ref(), &over, Script::Current).await.unwrap();
    let row = store.run(&run).await.unwrap().unwrap();
    assert_eq!(
        (row.retry_of.as_ref(), row.trigger, &row.inputs),
        (Some(&over.id), Trigger::Drop, &over.inputs)
    );
    assert_ne!(row.script, over.script, "the script as it is now");
    assert_eq!(row.model, "actor");
    let copy = RunFolder::new(&opened.state(), &run).input(0);
    assert_eq!(std::fs::read(copy).unwrap(), b"abc");
    let events = store.all_events(&run).await.unwrap();
    assert!(
        matches!(&events[0], Event { what: What::RunQueued { retry_of: Some(of), .. }, .. } if *of == over.id)
    );
    // The daemon carries it out; it has no file of the ledger to put away.
    let mut mill = Mill::start(&project, &clock, Vec::new(), &[]).await;
    assert_eq!(mill.begun().await.id, run);
    assert_eq!(mill.end_of(run.as_str()).await.state, RunState::Succeeded);
    mill.finish().await;
    // And once more from there, after its own copy has gone.
    RunFolder::new(&opened.state(), &run).tidy();
    let row = store.run(&run).await.unwrap().unwrap();
    retry(&opened, &store, clock.as_ref(), &row, Script::Current).await.unwrap();
}

#[tokio::test]
async fn every_file_of_a_batch_is_found_where_it_was_put_away() {
    let project = project().file("inbox/energy/a.csv", "abc").file("inbox/energy/b.csv", "def");
    let clock = Arc::new(ManualClock::new());
    let mut dropped = route("energy", Queueing::default());
    let batch = Batch { by: By::Folder, require: Vec::new(), quiet: None, max: None, timeout: None };
    dropped.drops = vec![Drop { batch: Some(batch), ..Drop::new("energy/*.csv") }];
    let mut mill = Mill::start(&project, &clock, vec![dropped], &[Act::Err("image::build_failed")]).await;
    let run = mill.begun().await.id;
    let over = mill.end_of(run.as_str()).await;
    mill.finish().await;
    assert_eq!((over.inputs.len(), project.files("failed").len()), (2, 3));
    let (opened, store) = (project.open(), store(&project, &clock).await);
    let run = retry(&opened, &store, clock.as_ref(), &over, Script::Current).await.unwrap();
    let copy = |index| std::fs::read(RunFolder::new(&opened.state(), &run).input(index)).unwrap();
    assert_eq!((copy(0), copy(1)), (b"abc".to_vec(), b"def".to_vec()));
}

#[tokio::test]
async fn what_a_request_brought_stays_with_its_run() {
    let project = project();
    let clock = Arc::new(ManualClock::new());
    let (opened, store) = (project.open(), store(&project, &clock).await);
    let over = RunId::parse("20261130-230000-aaaa").unwrap();
    let input = InputFile { path: RawPath::new("body.json"), size: 3, digest: Digest::of("abc") };
    store.queue_run(NewRun { inputs: vec![input], ..new_run(over.as_str(), "energy") }).await.unwrap();
    project.put(format!(".tidemill/runs/{over}/input/0"), "abc");
    project.put(format!(".tidemill/runs/{over}/artifacts/1/x"), "half");
    store.append(&over, ended(RunState::Failed)).await.unwrap();
    // As after the end, and as after a process that was killed right then.
    assert_eq!(tidy(&opened, &store).await.unwrap(), 1);
    assert_eq!(tidy(&opened, &store).await.unwrap(), 0);
    let row = store.run(&over).await.unwrap().unwrap();
    let run = retry(&opened, &store, clock.as_ref(), &row, Script::Current).await.unwrap();
    let files = [format!("{over}/input/0"), format!("{run}/input/0")].map(std::path::PathBuf::from);
    let mut found = project.files(".tidemill/runs");
    found.sort();
    let mut wanted = files.to_vec();
    wanted.sort();
    assert_eq!(found, wanted);
}

#[tokio::test]
async fn what_cannot_be_done_over_says_why_and_leaves_nothing() {
    let (project, clock, over) = failed().await;
    let (opened, store) = (project.open(), store(&project, &clock).await);
    let again = async |by| {
        let error = retry(&opened, &store, clock.as_ref(), &over, by).await.unwrap_err();
        (error.code(), format!("{} {}", error.message(), error.advice().unwrap_or_default()))
    };
    assert_eq!(again(Script::Same).await.0, "retry::script_gone");
    project.put("failed/energy/a.csv", "other");
    let (code, said) = again(Script::Current).await;
    assert_eq!(code, "retry::input_changed");
    assert!(said.contains("failed/energy/a.csv has changed"), "{said}");
    std::fs::remove_file(project.path("failed/energy/a.csv")).unwrap();
    let (code, said) = again(Script::Current).await;
    assert_eq!(code, "retry::input_gone");
    assert!(said.contains("energy/a.csv is not there") && said.contains("inbox/energy/a.csv"), "{said}");
    queue(&store, &[("run-waits", "energy")]).await;
    let waits = store.run(&RunId::parse("run-waits").unwrap()).await.unwrap().unwrap();
    let error = retry(&opened, &store, clock.as_ref(), &waits, Script::Current).await.unwrap_err();
    assert_eq!(error.code(), "retry::not_ended");
    assert!(project.files(".tidemill/runs").is_empty(), "{:?}", project.files(".tidemill/runs"));
}

#[tokio::test]
async fn all_that_failed_is_what_ended_so_and_was_not_done_over() {
    let project = project();
    let clock = Arc::new(ManualClock::new());
    let store = store(&project, &clock).await;
    let states = [RunState::Failed, RunState::Rejected, RunState::Succeeded, RunState::Failed];
    for (number, state) in states.into_iter().enumerate() {
        let workflow = if number == 3 { "other" } else { "energy" };
        let run = new_run(&format!("run-{number}"), workflow);
        store.queue_run(run.clone()).await.unwrap();
        clock.advance(std::time::Duration::from_secs(3600));
        store.append(&run.id, ended(state)).await.unwrap();
    }
    let ids = async |states: &[RunState], workflow, since: Option<&str>| -> Vec<String> {
        let since = since.map(|since| since.parse().unwrap());
        let rows = store.to_retry(states, workflow, since).await.unwrap();
        rows.into_iter().map(|row| row.id.to_string()).collect()
    };
    assert_eq!(ids(&[RunState::Failed], None, None).await, ["run-0", "run-3"]);
    assert_eq!(ids(&[RunState::Failed, RunState::Rejected], Some("energy"), None).await, ["run-0", "run-1"]);
    assert_eq!(ids(&[RunState::Failed], None, Some("2026-12-01T02:00:00Z")).await, ["run-3"]);
    let over = store.run(&RunId::parse("run-0").unwrap()).await.unwrap().unwrap();
    retry(&project.open(), &store, clock.as_ref(), &over, Script::Current).await.unwrap();
    assert_eq!(ids(&[RunState::Failed], None, None).await, ["run-3"]);
}

#[tokio::test]
async fn a_run_with_the_only_copy_of_its_input_keeps_it_while_it_waits() {
    let (project, clock, dropped) = failed().await;
    let (opened, store) = (project.open(), store(&project, &clock).await);
    let run = retry(&opened, &store, clock.as_ref(), &dropped, Script::Current).await.unwrap();
    let own = store.run(&run).await.unwrap().unwrap();
    for (row, stays) in [(&dropped, false), (&own, true)] {
        let folder = RunFolder::new(&opened.state(), &row.id);
        std::fs::create_dir_all(folder.input(0).parent().unwrap()).unwrap();
        std::fs::write(folder.input(0), "abc").unwrap();
        folder.tidy_until_later(row);
        assert_eq!(folder.input(0).exists(), stays);
    }
}
