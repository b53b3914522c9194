//! What is recorded of schedules.

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};
use tempfile::TempDir;
use tidemill::event::What;
use tidemill::event::id::{Digest, RunId};
use tidemill::event::state::RunState;
use tidemill::event::usage::Usage;
use tidemill::store::{Fire, Made, RunFilter, Store};
use tidemill::workflow::schedule::{Overlap, Schedule, Standing, When};

use super::{at, hourly, new_run};

fn fire<'a>(declared: &'a Schedule, hour: &str, run: &str) -> Fire<'a> {
    Fire {
        schedule: "report/1",
        declared,
        at: at(&format!("2026-12-01T{hour}:00:00Z")),
        missed: 2,
        start_by: None,
        run: new_run(run),
    }
}

async fn end(store: &Store, run: &str) {
    let ended =
        What::RunEnded { state: RunState::Succeeded, report: None, usage: Usage::default(), cost: None };
    store.append(&RunId::parse(run).unwrap(), ended).await.unwrap();
}

#[tokio::test]
async fn an_instant_makes_one_run() {
    let folder = TempDir::with_prefix("tidemill-schedules-").unwrap();
    let store = Store::open(folder.path()).await.unwrap();
    let declared = hourly();
    assert_eq!(store.fire(&fire(&declared, "06", "run-a")).await.unwrap(), Made::This);
    // Another process, with an id of its own.
    let other = Store::open(folder.path()).await.unwrap();
    assert_eq!(other.fire(&fire(&declared, "06", "run-b")).await.unwrap(), Made::Before);
    assert_eq!(store.fire(&fire(&declared, "07", "run-c")).await.unwrap(), Made::This);
    let runs = store.runs(&RunFilter::default()).await.unwrap();
    let ids: Vec<&str> = runs.iter().map(|run| run.id.as_str()).collect();
    assert_eq!(ids, ["run-c", "run-a"]);
    let fired = store.fired(&runs[0].id).await.unwrap().unwrap();
    assert_eq!((fired.at, fired.missed), (at("2026-12-01T07:00:00Z"), 2));
    assert_eq!(fired.previous, Some(at("2026-12-01T06:00:00Z")));
    assert_eq!(fired.timezone.iana_name(), Some("Europe/Zurich"));
    assert_eq!(store.fired(&runs[1].id).await.unwrap().unwrap().previous, None);
}

#[tokio::test]
async fn of_forgotten_runs_only_the_last_instant_is_kept() {
    let folder = TempDir::with_prefix("tidemill-schedules-").unwrap();
    let store = Store::open(folder.path()).await.unwrap();
    let declared = hourly();
    let runs = [("06", "run-a"), ("07", "run-b")];
    for (hour, run) in runs {
        store.fire(&fire(&declared, hour, run)).await.unwrap();
        end(&store, run).await;
    }
    store.forget_runs(&runs.map(|(_, run)| RunId::parse(run).unwrap())).await.unwrap();
    store.fire(&fire(&declared, "08", "run-c")).await.unwrap();
    let fired = store.fired(&RunId::parse("run-c").unwrap()).await.unwrap().unwrap();
    assert_eq!(fired.previous, Some(at("2026-12-01T07:00:00Z")), "the next run is told of it");
    let [first, last] = ["2026-12-01T05:00:00Z", "2026-12-01T09:00:00Z"].map(at);
    let kept = store.made("report/1", first, last).await.unwrap();
    assert_eq!(kept.len(), 2, "{kept:?}");
}

#[tokio::test]
async fn a_run_that_cannot_be_queued_leaves_its_instant_as_it_was() {
    let folder = TempDir::with_prefix("tidemill-schedules-").unwrap();
    let store = Store::open(folder.path()).await.unwrap();
    let declared = hourly();
    store.fire(&fire(&declared, "06", "run-a")).await.unwrap();
    // The id is taken: the run is refused, and its instant is not used up.
    store.fire(&fire(&declared, "07", "run-a")).await.unwrap_err();
    assert_eq!(store.fire(&fire(&declared, "07", "run-b")).await.unwrap(), Made::This);
}

#[tokio::test]
async fn scheduled_runs_wait_in_the_queue_and_those_by_hand_do_not() {
    let folder = TempDir::with_prefix("tidemill-schedules-").unwrap();
    let store = Store::open(folder.path()).await.unwrap();
    let by_hand = tidemill::store::NewRun { by_hand: true, ..new_run("by-hand") };
    store.queue_run(by_hand).await.unwrap();
    store.fire(&fire(&hourly(), "06", "run-a")).await.unwrap();
    let waiting = store.waiting(10).await.unwrap();
    assert_eq!(waiting.iter().map(|run| run.id.as_str()).collect::<Vec<_>>(), ["run-a"]);
    let unended = store.unended().await.unwrap();
    assert_eq!(unended.iter().map(|run| run.id.as_str()).collect::<Vec<_>>(), ["run-a"]);
}

#[tokio::test]
async fn runs_that_take_turns_wait_for_those_before_them() {
    let folder = TempDir::with_prefix("tidemill-schedules-").unwrap();
    let store = Store::open(folder.path()).await.unwrap();
    let turns = Schedule { overlap: Overlap::Queue, ..hourly() };
    for (hour, run) in [("06", "run-a"), ("07", "run-b"), ("08", "run-c")] {
        store.fire(&fire(&turns, hour, run)).await.unwrap();
    }
    for run in ["run-a", "run-b", "run-c"] {
        let waiting = store.waiting(10).await.unwrap();
        assert_eq!(waiting.iter().map(|run| run.id.as_str()).collect::<Vec<_>>(), [run]);
        assert!(store.is_busy("report/1").await.unwrap());
        end(&store, run).await;
    }
    assert!(!store.is_busy("report/1").await.unwrap());
}

#[tokio::test]
async fn other_instants_count_from_now_and_other_rules_do_not() {
    let folder = TempDir::with_prefix("tidemill-schedules-").unwrap();
    let store = Store::open(folder.path()).await.unwrap();
    let know = async |schedules: &[(&str, &str, &Schedule)], now| {
        store.know_schedules(schedules, at(now)).await.unwrap();
        store.standing("report/1").await.unwrap()
    };
    let first = know(&[("report/1", "report", &hourly())], "2026-12-01T06:00:00Z").await.unwrap();
    assert_eq!(first, Standing { decided: at("2026-12-01T06:00:00Z"), held: None, missed: 0 });
    let standing =
        Standing { decided: at("2026-12-01T08:00:00Z"), held: Some(at("2026-12-01T08:00:00Z")), missed: 7 };
    store.decide("report/1", standing).await.unwrap();
    let queue = Schedule { overlap: Overlap::Queue, ..hourly() };
    assert_eq!(know(&[("report/1", "report", &queue)], "2026-12-01T09:00:00Z").await, Some(standing));
    let daily = Schedule { when: When::Cron("0 6 * * *".to_owned()), ..hourly() };
    let edited = know(&[("report/1", "report", &daily)], "2026-12-01T10:00:00Z").await.unwrap();
    assert_eq!(edited, Standing { decided: at("2026-12-01T10:00:00Z"), held: None, missed: 0 });
    assert_eq!(know(&[], "2026-12-01T11:00:00Z").await, None);
}

#[tokio::test]
async fn a_database_of_the_first_version_is_brought_up() {
    let folder = TempDir::with_prefix("tidemill-schedules-").unwrap();
    let file = folder.path().join(Store::FILE);
    let mut first =
        SqliteConnectOptions::new().filename(&file).create_if_missing(true).connect().await.unwrap();
    sqlx::raw_sql(include_str!("../../src/store/schema/1.sql")).execute(&mut first).await.unwrap();
    sqlx::query(
        "INSERT INTO runs (id, workflow, trigger, state, model, script, inputs, queued_at, usage)
         VALUES ('run-old', 'report', 'drop', 'queued', 'analyst', ?1, '[]', 1, ?2)",
    )
    .bind(Digest::of("script").as_str())
    .bind(serde_json::to_string(&Usage::default()).unwrap())
    .execute(&mut first)
    .await
    .unwrap();
    sqlx::raw_sql("PRAGMA user_version = 1").execute(&mut first).await.unwrap();
    first.close().await.unwrap();
    let store = Store::open(folder.path()).await.unwrap();
    assert_eq!(store.fire(&fire(&hourly(), "06", "run-new")).await.unwrap(), Made::This);
    let runs = store.runs(&RunFilter::default()).await.unwrap();
    let ids: Vec<&str> = runs.iter().map(|run| run.id.as_str()).collect();
    assert_eq!(ids, ["run-new", "run-old"]);
}
