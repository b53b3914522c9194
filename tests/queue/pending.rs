//! A queue that is full.

use std::sync::Arc;

use tidemill::event::input::RawPath;
use tidemill::event::state::InputState;
use tidemill::run::intake::notice::Notice;
use tidemill::workflow::queueing::Queueing;
use tidemill::workflow::trigger::Drop;

use super::work::{Mill, queue, route, store};
use crate::support::clock::ManualClock;
use crate::support::project::Project;

#[tokio::test]
async fn with_a_full_queue_files_stay_in_the_inbox_until_fewer_runs_wait() {
    let project = Project::new().config("[watch]\nmax_pending = 2\n").file("inbox/a.csv", "abc");
    let clock = Arc::new(ManualClock::new());
    let before = store(&project, &clock).await;
    before.pause(None).await.unwrap();
    queue(&before, &[("run-1", "other"), ("run-2", "other")]).await;
    let mut dropped = route("energy", Queueing::default());
    dropped.drops = vec![Drop::new("*.csv")];
    let mut mill = Mill::start(&project, &clock, vec![dropped], &[]).await;
    let notice = mill.notice(|notice| matches!(notice, Notice::Paused { .. })).await;
    assert!(matches!(notice, Notice::Paused { why, .. } if why.code == "watch::queue_full"));
    Mill::pass(&clock, tidemill::clock::Clock::sleep(&*clock, std::time::Duration::from_secs(60))).await;
    assert_eq!(project.files("inbox"), [std::path::Path::new("a.csv")]);
    let rows = before.latest_inputs(Some(InputState::Settling), 10).await.unwrap();
    assert!(rows[0].reason.as_ref().unwrap().contains("fewer than 2 runs wait"), "{rows:?}");
    let history = before.history(&RawPath::new("a.csv")).await.unwrap();
    assert!(history[0].1.len() <= 3, "recorded once: {history:?}");
    before.resume(None).await.unwrap();
    // It was said once: the next word is that it goes on.
    assert_eq!(
        mill.notice(|notice| matches!(notice, Notice::Paused { .. } | Notice::GoesOn(_))).await,
        Notice::GoesOn("taking files in")
    );
    mill.notice(|notice| matches!(notice, Notice::PutAway { .. })).await;
    mill.finish().await;
    assert!(project.files("inbox").is_empty());
}
