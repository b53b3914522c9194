//! Why instants made no run, as it is remembered.

use tempfile::TempDir;
use tidemill::store::{Fire, Skip, Store};
use tidemill::workflow::schedule::Missed;

use super::watching::{End, open};
use super::{at, hourly, new_run};
use crate::support::project::Project;

fn skip(first: u32, last: u32, reason: &str) -> Skip {
    let hour = |hour: u32| at(&format!("2026-12-01T{hour:02}:00:00Z"));
    Skip {
        first: hour(first),
        last: hour(last),
        count: u64::from(last - first + 1),
        reason: reason.to_owned(),
    }
}

#[tokio::test]
async fn instants_in_a_row_are_one_and_what_comes_again_counts_once() {
    let folder = TempDir::with_prefix("tidemill-schedules-").unwrap();
    let store = Store::open(folder.path()).await.unwrap();
    let told = async || store.skips("report/1", 100).await.unwrap();
    for skip in [skip(1, 3, "busy"), skip(4, 4, "busy"), skip(4, 4, "busy")] {
        store.record_skip("report/1", &skip).await.unwrap();
    }
    assert_eq!(told().await, [skip(1, 4, "busy")]);
    store.record_skip("report/1", &skip(5, 5, "late")).await.unwrap();
    store.record_skip("report/2", &skip(5, 5, "busy")).await.unwrap();
    // A run in between ends the row.
    let (declared, run) = (hourly(), new_run("run-a"));
    let instant = at("2026-12-01T06:00:00Z");
    let fire =
        Fire { schedule: "report/1", declared: &declared, at: instant, missed: 0, start_by: None, run };
    store.fire(&fire).await.unwrap();
    store.record_skip("report/1", &skip(7, 7, "late")).await.unwrap();
    assert_eq!(told().await, [skip(7, 7, "late"), skip(5, 5, "late"), skip(1, 4, "busy")]);
    let made = store.made_runs("report/1", 10).await.unwrap();
    assert_eq!((made.len(), made[0].at, made[0].run.as_str()), (1, instant, "run-a"));
}

#[tokio::test]
async fn only_the_newest_are_kept() {
    let folder = TempDir::with_prefix("tidemill-schedules-").unwrap();
    let store = Store::open(folder.path()).await.unwrap();
    for number in 0..Skip::KEPT + 20 {
        let reason = if number % 2 == 0 { "busy" } else { "late" };
        let instant = at("2026-12-01T00:00:00Z") + jiff::SignedDuration::from_hours(i64::from(number));
        let skip = Skip { first: instant, last: instant, count: 1, reason: reason.to_owned() };
        store.record_skip("report/1", &skip).await.unwrap();
    }
    let kept = store.skips("report/1", 1000).await.unwrap();
    assert_eq!(kept.len(), 100);
    assert_eq!(kept[99].first, at("2026-12-01T20:00:00Z"));
    // A schedule that is gone is forgotten with them.
    store.know_schedules(&[("report/1", "report", &hourly())], at("2026-12-01T00:00:00Z")).await.unwrap();
    store.know_schedules(&[], at("2026-12-01T00:00:00Z")).await.unwrap();
    assert!(store.skips("report/1", 1000).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_passed_while_nobody_watched_is_remembered() {
    let project = Project::new();
    let schedule = tidemill::workflow::schedule::Schedule { missed: Missed::Skip, ..hourly() };
    let mut first = open(&project, "2026-12-01T05:59:00Z", &schedule, End::AtOnce).await;
    first.fired().await;
    first.ended().await;
    first.finish().await;
    let second = open(&project, "2026-12-01T11:30:00Z", &schedule, End::AtOnce).await;
    second.look().await;
    let told = second.store.skips("report/1", 10).await.unwrap();
    assert_eq!(told, [skip(7, 11, "nobody watched at the time")]);
    second.finish().await;
}
