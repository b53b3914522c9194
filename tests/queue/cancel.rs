//! Runs that people do not want any more.

use std::sync::Arc;

use tidemill::event::id::RunId;
use tidemill::event::state::RunState;

use super::work::{Act, Mill, queue, store};
use crate::support::clock::ManualClock;
use crate::support::project::Project;

#[tokio::test]
async fn one_that_waits_ends_and_one_in_work_is_stopped() {
    for act in [Act::Wait, Act::Deaf] {
        let project = Project::new().config("[watch]\nconcurrency = 1\n");
        let clock = Arc::new(ManualClock::new());
        let before = store(&project, &clock).await;
        queue(&before, &[("run-1", "energy"), ("run-2", "energy")]).await;
        let mut mill = Mill::start(&project, &clock, Vec::new(), &[act]).await;
        assert_eq!(mill.begun().await.id.as_str(), "run-1");
        // The worker is busy with the other one, and it ends all the same.
        before.cancel(&RunId::parse("run-2").unwrap()).await.unwrap();
        let waited = mill.end_of("run-2").await;
        assert_eq!((waited.state, waited.turns, waited.started_at), (RunState::Cancelled, 0, None));
        before.cancel(&RunId::parse("run-1").unwrap()).await.unwrap();
        let worked = mill.end_of("run-1").await;
        assert_eq!(
            (worked.state, worked.report.unwrap().code.as_str()),
            (RunState::Cancelled, "run::cancelled")
        );
        mill.finish().await;
    }
}

#[tokio::test]
async fn what_was_to_stop_when_the_process_died_does_not_begin_again() {
    let project = Project::new();
    let clock = Arc::new(ManualClock::new());
    let before = store(&project, &clock).await;
    queue(&before, &[("run-1", "energy")]).await;
    let run = RunId::parse("run-1").unwrap();
    before.take(&run, &tidemill::owner::Owner::this_process().unwrap()).await.unwrap().unwrap();
    before.cancel(&run).await.unwrap();
    let mill = Mill::start(&project, &clock, Vec::new(), &[]).await;
    assert_eq!(mill.end_of("run-1").await.state, RunState::Cancelled);
    mill.finish().await;
}
