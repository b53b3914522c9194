//! Runs that are tried again, and runs that another took.

use std::sync::Arc;
use std::time::Duration;

use tidemill::event::state::RunState;
use tidemill::run::intake::notice::Notice;
use tidemill::workflow::queueing::{Queueing, Retry};

use super::work::{Act, Mill, queue, route, store};
use crate::support::clock::ManualClock;
use crate::support::project::Project;

fn often(attempts: u32, backoff: u64) -> Queueing {
    let backoff = Duration::from_secs(backoff);
    Queueing { retry: Retry { attempts, backoff, max_backoff: backoff }, ..Queueing::default() }
}

#[tokio::test]
async fn a_workflow_says_how_often_it_is_tried_again() {
    let project = Project::new();
    let clock = Arc::new(ManualClock::new());
    queue(&store(&project, &clock).await, &[("run-1", "energy")]).await;
    let acts = [Act::Err("model::overloaded"); 6];
    let mut mill = Mill::start(&project, &clock, vec![route("energy", often(5, 10))], &acts).await;
    for try_number in 2..=5 {
        mill.begun().await;
        let notice = mill.notice(|notice| matches!(notice, Notice::TriedAgain { .. })).await;
        let Notice::TriedAgain { again, .. } = notice else { unreachable!() };
        assert!(again.to_string().ends_with(&format!(" ({try_number} of 5): it went wrong")), "{again}");
    }
    mill.begun().await;
    let row = mill.end_of("run-1").await;
    assert_eq!((row.state, row.report.unwrap().code.as_str()), (RunState::Failed, "model::overloaded"));
    mill.finish().await;
}

#[tokio::test]
async fn a_wait_outlasts_the_process() {
    let project = Project::new();
    let clock = Arc::new(ManualClock::new());
    queue(&store(&project, &clock).await, &[("run-1", "energy")]).await;
    let routes = || vec![route("energy", often(2, 3600))];
    let mut mill = Mill::start(&project, &clock, routes(), &[Act::Err("model::overloaded")]).await;
    mill.begun().await;
    let notice = mill.notice(|notice| matches!(notice, Notice::TriedAgain { .. })).await;
    let Notice::TriedAgain { again, .. } = notice else { unreachable!() };
    mill.finish().await;
    // The next one waits as long, and counts on.
    let mut mill = Mill::start(&project, &clock, routes(), &[Act::Err("model::overloaded")]).await;
    let row = mill.begun().await;
    assert_eq!(row.again.as_ref(), Some(&again));
    assert!(tidemill::clock::Clock::now(&*clock) >= again.at, "too early");
    assert_eq!(mill.end_of("run-1").await.state, RunState::Failed);
    mill.finish().await;
}

#[tokio::test]
async fn a_run_that_another_took_is_left_alone() {
    let project = Project::new();
    let clock = Arc::new(ManualClock::new());
    queue(&store(&project, &clock).await, &[("run-1", "energy")]).await;
    let mut mill = Mill::start(&project, &clock, Vec::new(), &[Act::Lose]).await;
    mill.begun().await;
    let notice = mill.notice(|notice| matches!(notice, Notice::Warned(_))).await;
    assert!(matches!(notice, Notice::Warned(report) if report.code == "store::lease_lost"));
    let run = tidemill::event::id::RunId::parse("run-1").unwrap();
    assert_eq!(mill.store.run(&run).await.unwrap().unwrap().state, RunState::Preparing);
    mill.finish().await;
}
