//! A schedule fires, and its run does its work with a scripted model.

use std::sync::Arc;
use std::time::Duration;

use tidemill::event::state::RunState;
use tidemill::run::intake::Daemon;
use tidemill::run::intake::notice::Tell;
use tidemill::run::intake::stop::Stop;
use tidemill::run::watching;
use tidemill::store::{RunFilter, RunRow};

use super::at;
use crate::support::clock::ManualClock;
use crate::support::stage::Stage;

const FIELDS: &str = r#"sandbox = "none",
  triggers = { mill.schedule { cron = "0 6 * * MON", timezone = "Europe/Zurich", missed = "latest" } },
  prompt = function(run)
    local before = run.previous_scheduled_at
    if before then assert(before < run.scheduled_at and before ~= run.scheduled_at) end
    return ("The week ending %s (%s, %s), after %s, %d missed, by %s."):format(
      run.scheduled_at:date(), run.scheduled_at:clock(), run.scheduled_at, before and before:date() or "none",
      run.missed_count, run.trigger)
  end,
  outputs = { ["output/a.txt"] = expect.text {} },"#;

const SCRIPT: &str = r#"return test.script {
  test.call("write_file", { path = "output/a.txt", content = "one two three" }),
  test.say "done",
}"#;

/// The runs, oldest first, when there are `count` and all have ended.
async fn ended(stage: &Stage, clock: &ManualClock, count: usize) -> Vec<RunRow> {
    loop {
        let mut runs = stage.store.runs(&RunFilter::default()).await.unwrap();
        if runs.len() >= count && runs.iter().all(|run| run.state.is_end()) {
            runs.reverse();
            return runs;
        }
        tokio::task::yield_now().await;
        clock.advance(Duration::from_secs(1));
    }
}

#[tokio::test]
async fn a_schedule_fires_and_its_run_succeeds() {
    let stage = Stage::without_image(FIELDS, SCRIPT).await;
    let clock = Arc::new(ManualClock::new());
    // A minute before six in the morning in Zurich, a Monday.
    clock.set_wall(at("2026-11-30T04:59:00Z"));
    let project = stage.conductor.project.clone();
    let routes = watching::routes(&project, &stage.store, None).await.unwrap();
    let conduct = Arc::new(stage.conductor.clone());
    let daemon = Daemon::open(
        Daemon::lock(&project).unwrap(),
        &project,
        stage.store.clone(),
        clock.clone(),
        routes,
        conduct,
        Tell::default(),
    );
    let daemon = daemon.await.unwrap();
    let stop = Stop::new();
    let task = tokio::spawn(daemon.run(stop.clone()));
    let work = async {
        ended(&stage, &clock, 1).await;
        // The machine sleeps through a week, and wakes on a Thursday.
        clock.set_wall(at("2026-12-10T12:00:00Z"));
        let runs = ended(&stage, &clock, 2).await;
        stop.finish();
        task.await.unwrap().unwrap();
        runs
    };
    let runs = tokio::time::timeout(Duration::from_secs(60), work).await.unwrap();
    let mut prompts = Vec::new();
    for run in &runs {
        assert_eq!(run.state, RunState::Succeeded, "{:?}", run.report);
        assert_eq!((run.trigger.as_str(), run.attempts), ("schedule", 0));
        let folder = stage.project.path(run.published.clone().unwrap());
        assert_eq!(std::fs::read_to_string(folder.join("a.txt")).unwrap(), "one two three");
        for event in stage.store.all_events(&run.id).await.unwrap() {
            if let tidemill::event::What::PromptReady { prompt, .. } = event.what {
                prompts.push(prompt.preview().to_owned());
            }
        }
    }
    assert_eq!(
        prompts,
        [
            "The week ending 2026-11-30 (06:00:00, 2026-11-30T05:00:00Z), after none, 0 missed, by schedule.",
            "The week ending 2026-12-07 (06:00:00, 2026-12-07T05:00:00Z), after 2026-11-30, 0 missed, by schedule.",
        ]
    );
}
