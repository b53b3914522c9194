//! What waits, and in which order it is seen.

use tidemill::diagnostic::Diagnostic;
use tidemill::event::What;
use tidemill::event::again::Again;
use tidemill::event::state::RunState;

use super::{Fresh, ended, entered};

pub(super) async fn the_oldest_of_each_workflow_are_seen_however_many_wait(fresh: &Fresh) {
    for number in 0..300 {
        fresh.queue(&format!("many-{number}"), "many").await;
    }
    fresh.queue("few-1", "few").await;
    fresh.queue("other-1", "other").await;
    assert_eq!(fresh.waiting(2).await, ["many-0", "many-1", "few-1", "other-1"]);
    assert_eq!(fresh.store.count_waiting().await.unwrap(), 302);
    for run in ["many-0", "few-1"] {
        let run = tidemill::event::id::RunId::parse(run).unwrap();
        fresh.take(&run).await.unwrap();
    }
    assert_eq!(fresh.waiting(2).await, ["many-1", "many-2", "other-1"]);
}

pub(super) async fn a_postponed_run_waits_for_its_time(fresh: &Fresh) {
    let run = fresh.queue("run-1", "energy").await;
    let row = fresh.take(&run).await.unwrap();
    let again = Again {
        at: row.queued_at + jiff::SignedDuration::from_secs(30),
        failures: 1,
        counted: 1,
        of: Some(3),
        why: Diagnostic::new("model::overloaded", "it has too much to do").report(),
    };
    fresh.store.give_back(&row.lease(), What::Postponed { again: again.clone() }).await.unwrap();
    let waits = fresh.row(&run).await;
    assert_eq!((waits.state, waits.attempts, waits.waits_for()), (RunState::Queued, 0, Some(&again)));
    fresh.pass(29);
    assert!(fresh.waiting(10).await.is_empty() && fresh.take(&run).await.is_none());
    assert_eq!(fresh.store.count_waiting().await.unwrap(), 1);
    fresh.pass(1);
    assert_eq!(fresh.waiting(10).await, ["run-1"]);
    let taken = fresh.take(&run).await.unwrap();
    // How often it failed is known until its end.
    fresh.store.append_under(&taken.lease(), entered(RunState::Running)).await.unwrap();
    let row = fresh.row(&run).await;
    assert_eq!((row.again.as_ref(), row.waits_for()), (Some(&again), None));
    fresh.store.append_under(&taken.lease(), ended(RunState::Succeeded)).await.unwrap();
    assert_eq!(fresh.row(&run).await.again, None);
}

pub(super) async fn a_cancelled_run_does_not_wait(fresh: &Fresh) {
    let run = fresh.queue("run-1", "energy").await;
    let row = fresh.take(&run).await.unwrap();
    let again = Again {
        at: row.queued_at + jiff::SignedDuration::from_hours(1),
        failures: 1,
        counted: 0,
        of: None,
        why: Diagnostic::new("sandbox::no_engine", "there is none").report(),
    };
    fresh.store.give_back(&row.lease(), What::Postponed { again }).await.unwrap();
    let asked = fresh.store.cancel(&run).await.unwrap();
    assert!(asked.cancel_at.is_some());
    fresh.pass(1);
    assert_eq!(fresh.store.cancel(&run).await.unwrap().cancel_at, asked.cancel_at, "asked once");
    assert_eq!(fresh.store.to_cancel().await.unwrap().len(), 1);
    // It is taken to be ended, at once.
    let row = fresh.take(&run).await.unwrap();
    fresh.store.append_under(&row.lease(), ended(RunState::Cancelled)).await.unwrap();
    assert!(fresh.store.to_cancel().await.unwrap().is_empty());
    assert_eq!(fresh.store.cancel(&run).await.unwrap_err().code(), "store::run_ended");
}
