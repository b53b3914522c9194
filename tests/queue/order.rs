//! Who begins first.

use std::sync::Arc;

use tidemill::workflow::queueing::Queueing;

use super::work::{Act, Mill, queue, route, store};
use crate::support::clock::ManualClock;
use crate::support::project::Project;

#[tokio::test]
async fn a_workflow_with_many_runs_does_not_keep_the_others_waiting() {
    let project = Project::new().config("[watch]\nconcurrency = 2\n");
    let clock = Arc::new(ManualClock::new());
    let before = store(&project, &clock).await;
    queue(&before, &[("many-1", "many"), ("many-2", "many"), ("many-3", "many"), ("few-1", "few")]).await;
    let routes = vec![route("many", Queueing::default()), route("few", Queueing::default())];
    let mut mill = Mill::start(&project, &clock, routes, &[Act::Hold; 4]).await;
    let mut begun = [mill.begun().await.id.to_string(), mill.begun().await.id.to_string()];
    begun.sort();
    assert_eq!(begun, ["few-1", "many-1"]);
    mill.double.let_go.notify_waiters();
    for _ in 0..2 {
        mill.begun().await;
        mill.double.let_go.notify_waiters();
    }
    mill.end_of("many-3").await;
    mill.finish().await;
}

#[tokio::test]
async fn priority_and_a_workflows_own_limit_hold() {
    let project = Project::new().config("[watch]\nconcurrency = 3\n");
    let clock = Arc::new(ManualClock::new());
    let before = store(&project, &clock).await;
    queue(&before, &[("a-1", "usual"), ("b-1", "urgent"), ("b-2", "urgent"), ("a-2", "usual")]).await;
    let urgent = Queueing { priority: 10, concurrency: Some(1), ..Queueing::default() };
    let routes = vec![route("usual", Queueing::default()), route("urgent", urgent)];
    let mut mill = Mill::start(&project, &clock, routes, &[Act::Hold; 3]).await;
    let mut begun = Vec::new();
    for _ in 0..3 {
        begun.push(mill.begun().await.id.to_string());
    }
    begun.sort();
    assert_eq!(begun, ["a-1", "a-2", "b-1"]);
    mill.double.let_go.notify_waiters();
    assert_eq!(mill.begun().await.id.as_str(), "b-2");
    mill.end_of("b-2").await;
    mill.finish().await;
}

#[tokio::test]
async fn a_model_is_used_by_so_many_at_once() {
    let model = "[models.analyst]\nprovider = \"openai\"\nconcurrency = 1\n";
    let project = Project::new().config(&format!("[watch]\nconcurrency = 4\n{model}"));
    let clock = Arc::new(ManualClock::new());
    let before = store(&project, &clock).await;
    queue(&before, &[("a-1", "a"), ("b-1", "b")]).await;
    let mut mill = Mill::start(&project, &clock, Vec::new(), &[Act::Hold]).await;
    let first = mill.begun().await.id;
    Mill::pass(&clock, tidemill::clock::Clock::sleep(&*clock, std::time::Duration::from_secs(10))).await;
    assert_eq!(before.in_work().await.unwrap().len(), 1);
    mill.double.let_go.notify_waiters();
    assert_ne!(mill.begun().await.id, first);
    mill.finish().await;
}
