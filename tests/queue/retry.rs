//! Runs done over.

use std::sync::Arc;

use tidemill::event::id::RunId;
use tidemill::event::state::RunState;
use tidemill::event::trigger::Trigger;
use tidemill::event::{Event, What};
use tidemill::run::folder::RunFolder;
use tidemill::run::retry::{By, retry};
use tidemill::store::RunRow;
use tidemill::workflow::queueing::Queueing;
use tidemill::workflow::trigger::Drop;

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
    let run = retry(&opened, &store, clock.as_ref(), &over, By::Current).await.unwrap();
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
    retry(&opened, &store, clock.as_ref(), &row, By::Current).await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_done_over_says_why_and_leaves_nothing() {
    let (project, clock, over) = failed().await;
    let (opened, store) = (project.open(), store(&project, &clock).await);
    let again = async |by| {
        let error = retry(&opened, &store, clock.as_ref(), &over, by).await.unwrap_err();
        (error.code(), format!("{} {}", error.message(), error.advice().unwrap_or_default()))
    };
    assert_eq!(again(By::Same).await.0, "retry::script_gone");
    project.put("failed/energy/a.csv", "other");
    let (code, said) = again(By::Current).await;
    assert_eq!(code, "retry::input_changed");
    assert!(said.contains("failed/energy/a.csv has changed"), "{said}");
    std::fs::remove_file(project.path("failed/energy/a.csv")).unwrap();
    let (code, said) = again(By::Current).await;
    assert_eq!(code, "retry::input_gone");
    assert!(said.contains("energy/a.csv is not there") && said.contains("inbox/energy/a.csv"), "{said}");
    queue(&store, &[("run-waits", "energy")]).await;
    let waits = store.run(&RunId::parse("run-waits").unwrap()).await.unwrap().unwrap();
    let error = retry(&opened, &store, clock.as_ref(), &waits, By::Current).await.unwrap_err();
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
    retry(&project.open(), &store, clock.as_ref(), &over, By::Current).await.unwrap();
    assert_eq!(ids(&[RunState::Failed], None, None).await, ["run-3"]);
}

#[tokio::test]
async fn a_run_with_the_only_copy_of_its_input_keeps_it_while_it_waits() {
    let (project, clock, dropped) = failed().await;
    let (opened, store) = (project.open(), store(&project, &clock).await);
    let run = retry(&opened, &store, clock.as_ref(), &dropped, By::Current).await.unwrap();
    let own = store.run(&run).await.unwrap().unwrap();
    for (row, stays) in [(&dropped, false), (&own, true)] {
        let folder = RunFolder::new(&opened.state(), &row.id);
        std::fs::create_dir_all(folder.input(0).parent().unwrap()).unwrap();
        std::fs::write(folder.input(0), "abc").unwrap();
        folder.tidy_until_later(row);
        assert_eq!(folder.input(0).exists(), stays);
    }
}
