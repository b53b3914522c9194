//! The worked example `workflows/weekly_report.lua`, from an instant of its schedule to the report in the outbox.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tidemill::clock::Clock as _;
use tidemill::event::What;
use tidemill::event::id::{Digest, RunId};
use tidemill::event::state::RunState;
use tidemill::event::trigger::Trigger;
use tidemill::event::usage::Usage;
use tidemill::run::conductor::{Conductor, Unfinished};
use tidemill::run::engines::Engines;
use tidemill::run::intake::Daemon;
use tidemill::run::intake::notice::Tell;
use tidemill::run::intake::stop::Stop;
use tidemill::run::watching;
use tidemill::sandbox::Silent;
use tidemill::store::{NewRun, RunFilter, RunRow, Store};

use crate::support::clock::ManualClock;
use crate::support::project::Project;

const WEEKLY: &str = include_str!("../workflows/weekly_report.lua");

const MODELS: &str = "[models.\"gpt-5.4\"]\nprovider = \"scripted\"\nscript = \"models/reporter.lua\"\n";

/// Reads what it was given, and writes the report.
const REPORTER: &str = r#"local test = require "tidemill.test"
local words = ("The building used little energy. "):rep(30)
return test.script {
  test.call("read_file", { path = "input/20261124-100000-aaaa/anomalies.csv" }),
  test.call("write_file", { path = "output/week.md", content = words }),
  test.say "done",
}
"#;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A run of `energy-anomalies` that published this CSV now.
async fn published(project: &Project, store: &Store, id: &str, text: &str, now: Timestamp) {
    let run = RunId::parse(id).unwrap();
    let new = NewRun::new(run.clone(), "energy-anomalies", Trigger::Manual, Digest::of(""), "gpt-5.4", now);
    store.queue_run(new).await.unwrap();
    let folder = format!("outbox/energy-anomalies/{id}");
    project.put(format!("{folder}/anomalies.csv"), text);
    let (path, size, digest) = ("output/anomalies.csv".into(), text.len() as u64, Digest::of(text));
    let ended =
        What::RunEnded { state: RunState::Succeeded, report: None, usage: Usage::default(), cost: None };
    for what in [
        What::ArtifactCollected { path, size, digest },
        What::Published { folder, artifacts: Vec::new() },
        ended,
    ] {
        store.append(&run, what).await.unwrap();
    }
}

/// The newest report, when there are so many and all have ended.
async fn report(store: &Store, clock: &ManualClock, count: usize) -> RunRow {
    let filter = RunFilter { workflow: Some("weekly-report".into()), ..RunFilter::default() };
    loop {
        let mut runs = store.runs(&filter).await.unwrap();
        if runs.len() == count && runs.iter().all(|run| run.state.is_end()) {
            return runs.remove(0);
        }
        tokio::task::yield_now().await;
        clock.advance(Duration::from_secs(1));
    }
}

#[tokio::test]
async fn every_monday_there_is_a_report_of_the_week() {
    // A container is what other tests are about.
    let image = "image    = mill.image { build = \"images/python-data\" },";
    assert!(WEEKLY.contains(image));
    let project = Project::new()
        .config(MODELS)
        .workflow("weekly_report.lua", &WEEKLY.replace(image, "sandbox = \"none\","))
        .file("models/reporter.lua", REPORTER);
    let opened = project.open();
    let clock = Arc::new(ManualClock::new());
    clock.set_wall(at("2026-11-24T10:00:00Z"));
    let store = Store::open_with(&opened.state(), clock.clone()).await.unwrap();
    published(&project, &store, "20261124-100000-aaaa", "timestamp\nfirst\n", at("2026-11-24T10:00:00Z"))
        .await;
    // A minute before six in the morning in Zurich, a Monday.
    clock.set_wall(at("2026-11-30T04:59:00Z"));
    let engines = Engines::new(&opened, |warning| panic!("{warning:?}"));
    let conductor = Conductor::new(&opened, &store, engines, Arc::new(Silent), Unfinished::Ends);
    let daemon = Daemon::open(
        Daemon::lock(&opened).unwrap(),
        &opened,
        store.clone(),
        clock.clone(),
        watching::routes(&opened, &store, None).await.unwrap(),
        Arc::new(conductor),
        Tell::default(),
    )
    .await
    .unwrap();
    let stop = Stop::new();
    let task = tokio::spawn(daemon.run(stop.clone()));
    let work = async {
        let first = report(&store, &clock, 1).await;
        published(&project, &store, "20261202-100000-bbbb", "timestamp\nsecond\n", clock.now()).await;
        clock.set_wall(at("2026-12-07T04:59:50Z"));
        let second = report(&store, &clock, 2).await;
        stop.finish();
        task.await.unwrap().unwrap();
        (first, second)
    };
    let (first, second) = tokio::time::timeout(Duration::from_secs(60), work).await.unwrap();
    for (run, week, given) in [
        (&first, "2026-11-30", "input/20261124-100000-aaaa/anomalies.csv"),
        (&second, "2026-12-07", "input/20261202-100000-bbbb/anomalies.csv"),
    ] {
        assert_eq!(run.state, RunState::Succeeded, "{:?}", run.report);
        let text = project.path(run.published.clone().unwrap()).join("week.md");
        assert!(std::fs::read_to_string(text).unwrap().starts_with("The building"));
        let events = store.all_events(&run.id).await.unwrap();
        let asked = events.iter().any(|event| {
            let wanted = format!("Write output/week.md for the week ending {week}.");
            matches!(&event.what, What::PromptReady { prompt, .. } if prompt.preview() == wanted)
        });
        assert!(asked, "{week}");
        let entries: Vec<&str> = events
            .iter()
            .filter_map(|event| match &event.what {
                What::WorkspaceFilled { entries, .. } => Some(entries),
                _ => None,
            })
            .flatten()
            .map(|entry| entry.path.as_str())
            .collect();
        assert_eq!(entries, [given], "what was published since the report before");
    }
}
