//! The loop, from an instant to the end of its run.

use std::time::Duration;

use tidemill::event::What;
use tidemill::event::state::RunState;
use tidemill::run::abandoned;
use tidemill::store::{Fire, Made, RunFilter, Store};
use tidemill::workflow::schedule::{Missed, Overlap, Schedule};

use super::watching::{End, open};
use super::{at, hourly, new_run};
use crate::support::project::Project;

#[tokio::test]
async fn every_instant_makes_a_run_that_is_carried_out() {
    let project = Project::new();
    let mut watching = open(&project, "2026-12-01T05:30:00Z", &hourly(), End::AtOnce).await;
    for hour in ["06", "07", "08"] {
        assert_eq!(watching.fired().await, at(&format!("2026-12-01T{hour}:00:00Z")));
        watching.ended().await;
    }
    let wanted = ["2026-12-01T06:00:00Z +0", "2026-12-01T07:00:00Z +0", "2026-12-01T08:00:00Z +0"];
    assert_eq!(watching.instants().await, wanted);
    watching.finish().await;
}

#[tokio::test]
async fn what_passed_while_nobody_watched_goes_by_the_policy() {
    for (missed, wanted) in [
        (Missed::Skip, &["2026-12-01T06:00:00Z +0", "2026-12-01T12:00:00Z +5"][..]),
        (Missed::Latest, &["2026-12-01T06:00:00Z +0", "2026-12-01T11:00:00Z +4", "2026-12-01T12:00:00Z +0"]),
    ] {
        let project = Project::new();
        let schedule = Schedule { missed, ..hourly() };
        let mut first = open(&project, "2026-12-01T05:59:00Z", &schedule, End::AtOnce).await;
        first.fired().await;
        first.ended().await;
        first.finish().await;
        let mut second = open(&project, "2026-12-01T11:30:00Z", &schedule, End::AtOnce).await;
        while second.fired().await < at("2026-12-01T12:00:00Z") {
            second.ended().await;
        }
        assert_eq!(second.instants().await, wanted, "{missed:?}");
        second.finish().await;
    }
}

#[tokio::test]
async fn a_process_killed_after_the_run_was_queued_makes_no_second_one() {
    let project = Project::new();
    let mut first = open(&project, "2026-12-01T05:59:00Z", &hourly(), End::AtOnce).await;
    first.fired().await;
    let run = first.ended().await;
    let before = first.store.standing("report/1").await.unwrap().unwrap();
    first.finish().await;
    // As if what was decided had never reached the disk.
    let store = Store::open(&project.path(".tidemill")).await.unwrap();
    let decided = tidemill::workflow::schedule::Standing { decided: at("2026-12-01T05:59:00Z"), ..before };
    store.decide("report/1", decided).await.unwrap();
    store.close().await;
    let mut second = open(&project, "2026-12-01T06:00:30Z", &hourly(), End::AtOnce).await;
    assert_eq!(second.fired().await, at("2026-12-01T07:00:00Z"));
    assert_ne!(second.ended().await, run);
    assert_eq!(second.instants().await[..2], ["2026-12-01T06:00:00Z +0", "2026-12-01T07:00:00Z +0"]);
    second.finish().await;
}

#[tokio::test]
async fn a_run_that_a_dead_process_left_is_carried_out() {
    for state in [RunState::Queued, RunState::Running] {
        let project = Project::new();
        let store = Store::open(&project.path(".tidemill")).await.unwrap();
        let declared = hourly();
        let run = new_run("20261130-230000-aaaa");
        let (id, instant) = (run.id.clone(), at("2026-11-30T23:00:00Z"));
        let fire =
            Fire { schedule: "report/1", declared: &declared, at: instant, missed: 0, start_by: None, run };
        assert_eq!(store.fire(&fire).await.unwrap(), Made::This);
        if state != RunState::Queued {
            store.append(&id, What::StateEntered { state, reason: None }).await.unwrap();
        }
        assert_eq!(abandoned::bury(&project.open(), &store).await.unwrap(), 0, "nobody started it by hand");
        store.close().await;
        let mut watching = open(&project, "2026-12-01T05:30:00Z", &hourly(), End::AtOnce).await;
        assert_eq!(watching.ended().await, id, "{state}");
        watching.finish().await;
    }
}

#[tokio::test]
async fn a_clock_that_jumps_makes_nothing_twice() {
    let project = Project::new();
    let mut watching = open(&project, "2026-12-01T05:59:00Z", &hourly(), End::AtOnce).await;
    assert_eq!(watching.fired().await, at("2026-12-01T06:00:00Z"));
    watching.ended().await;
    // The machine slept: what passed is missed.
    watching.clock.set_wall(at("2026-12-01T09:30:00Z"));
    assert_eq!(watching.fired().await, at("2026-12-01T10:00:00Z"));
    watching.ended().await;
    // Somebody sets it back before an instant that made a run.
    watching.clock.set_wall(at("2026-12-01T09:59:00Z"));
    assert_eq!(watching.fired().await, at("2026-12-01T11:00:00Z"));
    watching.ended().await;
    // Far back: instants that come now have made no run yet.
    watching.clock.set_wall(at("2026-12-01T06:30:00Z"));
    watching.look().await;
    assert_eq!(watching.fired().await, at("2026-12-01T07:00:00Z"));
    watching.ended().await;
    watching.finish().await;
}

#[tokio::test]
async fn a_clock_set_back_while_a_run_works_makes_nothing_missed() {
    let project = Project::new();
    let mut watching = open(&project, "2026-12-01T05:59:00Z", &hourly(), End::LetGo).await;
    watching.fired().await;
    // It looks before the instant comes again, and once more when it has.
    watching.clock.set_wall(at("2026-12-01T05:59:00Z"));
    watching.look().await;
    watching.look().await;
    watching.double.let_go.notify_one();
    watching.ended().await;
    assert_eq!(watching.fired().await, at("2026-12-01T07:00:00Z"));
    assert_eq!(watching.instants().await[1], "2026-12-01T07:00:00Z +0");
    watching.double.let_go.notify_one();
    watching.finish().await;
}

#[tokio::test]
async fn an_instant_while_a_run_works_goes_by_overlap() {
    let project = Project::new();
    let latest = Schedule { overlap: Overlap::Latest, ..hourly() };
    let mut watching = open(&project, "2026-12-01T05:59:00Z", &latest, End::LetGo).await;
    assert_eq!(watching.fired().await, at("2026-12-01T06:00:00Z"));
    watching.clock.set_wall(at("2026-12-01T06:59:50Z"));
    watching.look().await;
    watching.clock.set_wall(at("2026-12-01T07:59:50Z"));
    watching.look().await;
    assert_eq!(watching.instants().await.len(), 1);
    watching.double.let_go.notify_one();
    assert_eq!(watching.fired().await, at("2026-12-01T08:00:00Z"));
    assert_eq!(watching.instants().await[1], "2026-12-01T08:00:00Z +1");
    watching.double.let_go.notify_one();
    watching.finish().await;
}

#[tokio::test]
async fn a_run_that_waited_past_its_deadline_does_not_begin() {
    let project = Project::new().config("[watch]\nconcurrency = 1\n");
    let schedule =
        Schedule { overlap: Overlap::Queue, start_deadline: Some(Duration::from_secs(1800)), ..hourly() };
    let mut watching = open(&project, "2026-12-01T05:59:00Z", &schedule, End::LetGo).await;
    watching.fired().await;
    assert_eq!(watching.fired().await, at("2026-12-01T07:00:00Z"));
    watching.clock.set_wall(at("2026-12-01T07:45:00Z"));
    watching.double.let_go.notify_one();
    watching.ended().await;
    assert_eq!(watching.fired().await, at("2026-12-01T08:00:00Z"));
    let runs = watching.store.runs(&RunFilter::default()).await.unwrap();
    let late = &runs[1];
    assert_eq!((late.state, late.started_at), (RunState::Failed, None));
    assert_eq!(late.report.as_ref().unwrap().code, "schedule::too_late");
    watching.double.let_go.notify_one();
    watching.finish().await;
}
