//! What people ask of the queue as a whole, and what they are told.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use tidemill::clock::Clock as _;
use tidemill::run::intake::notice::Notice;
use tidemill::run::intake::{Daemon, Lock};
use tidemill::run::{cancel, socket};

use super::work::{Act, Mill, new_run, queue, store};
use crate::support::clock::ManualClock;
use crate::support::project::Project;

async fn pass(clock: &ManualClock) {
    Mill::pass(clock, clock.sleep(Duration::from_secs(10))).await;
}

#[tokio::test]
async fn nothing_begins_while_it_is_paused_and_all_does_afterwards() {
    let project = Project::new();
    let clock = Arc::new(ManualClock::new());
    let before = store(&project, &clock).await;
    before.pause(None).await.unwrap();
    queue(&before, &[("run-1", "energy"), ("run-2", "other")]).await;
    let mut mill = Mill::start(&project, &clock, Vec::new(), &[Act::Hold, Act::Hold]).await;
    pass(&clock).await;
    assert!(before.in_work().await.unwrap().is_empty());
    // It outlasts the process.
    mill.finish().await;
    mill = Mill::start(&project, &clock, Vec::new(), &[Act::Hold, Act::Hold]).await;
    before.pause(Some("energy")).await.unwrap();
    pass(&clock).await;
    assert!(before.in_work().await.unwrap().is_empty());
    before.resume(Some("")).await.unwrap();
    assert_eq!(mill.begun().await.id.as_str(), "run-2");
    pass(&clock).await;
    assert_eq!(before.in_work().await.unwrap().len(), 1);
    assert!(before.resume(None).await.unwrap());
    assert_eq!(mill.begun().await.id.as_str(), "run-1");
    assert!(!before.resume(None).await.unwrap(), "nothing is paused any more");
    mill.double.let_go.notify_waiters();
    mill.finish().await;
}

#[tokio::test]
async fn a_drained_daemon_finishes_what_it_has_and_the_next_one_takes_the_rest() {
    let project = Project::new().config("[watch]\nconcurrency = 1\n");
    let clock = Arc::new(ManualClock::new());
    let before = store(&project, &clock).await;
    queue(&before, &[("run-1", "energy"), ("run-2", "energy")]).await;
    let mut mill = Mill::start(&project, &clock, Vec::new(), &[Act::Hold]).await;
    mill.begun().await;
    let holder = Lock::holder(&project.open().state()).unwrap();
    before.drain(&holder.owner.to_string()).await.unwrap();
    assert_eq!(mill.notice(|notice| matches!(notice, Notice::Finishing(_))).await, Notice::Finishing(1));
    mill.double.let_go.notify_waiters();
    mill.ends().await;
    assert_eq!(before.count_waiting().await.unwrap(), 1);
    // What was asked of that one does not concern another, even of the same process.
    let mut next = Mill::start(&project, &clock, Vec::new(), &[]).await;
    assert_eq!(next.begun().await.id.as_str(), "run-2");
    next.end_of("run-2").await;
    next.finish().await;
}

#[tokio::test]
async fn the_socket_tells_how_it_is_and_wakes_the_daemon() {
    let project = Project::new().config("[watch]\nconcurrency = 1\n");
    let opened = project.open();
    let clock = Arc::new(ManualClock::new());
    let before = store(&project, &clock).await;
    assert_eq!(socket::ask_status(&opened).await, None, "nobody listens");
    // What a dead one left.
    project.put(".tidemill/daemon.sock", "");
    queue(&before, &[("run-1", "energy"), ("run-2", "energy")]).await;
    let mut mill = Mill::start(&project, &clock, Vec::new(), &[Act::Hold]).await;
    mill.begun().await;
    before.pause(Some("energy")).await.unwrap();
    let status = socket::ask_status(&opened).await.unwrap();
    assert_eq!(status.daemon.as_ref().unwrap().pid, std::process::id());
    let in_work: Vec<&str> = status.in_work.iter().map(|run| run.run.as_str()).collect();
    assert_eq!((in_work.as_slice(), status.waiting), (&["run-1"][..], 1));
    assert!(status.paused.workflows.contains("energy"));
    let mode = std::fs::metadata(project.path(".tidemill/daemon.sock")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    before.resume(None).await.unwrap();
    mill.double.let_go.notify_waiters();
    assert_eq!(mill.begun().await.id.as_str(), "run-2");
    mill.end_of("run-2").await;
    // No time passes from here on: only what it is told can wake it.
    before.queue_run(new_run("run-3", "energy")).await.unwrap();
    socket::look(&opened).await;
    assert_eq!(mill.begun_now().await.id.as_str(), "run-3");
    mill.end_of("run-3").await;
    mill.finish().await;
    assert!(!project.path(".tidemill/daemon.sock").exists());
}

#[tokio::test]
async fn whoever_works_by_hand_learns_that_it_is_to_stop() {
    let project = Project::new();
    let clock = Arc::new(ManualClock::new());
    let store = store(&project, &clock).await;
    let run = new_run("run-1", "energy");
    store.queue_run(run.clone()).await.unwrap();
    let asked = {
        let (store, run, clock) = (store.clone(), run.id.clone(), clock.clone());
        tokio::spawn(async move { cancel::asked(&store, &run, clock.as_ref()).await })
    };
    pass(&clock).await;
    assert!(!asked.is_finished());
    store.cancel(&run.id).await.unwrap();
    Mill::pass(&clock, asked).await.unwrap();
}

#[tokio::test]
async fn without_a_daemon_a_run_is_ended_by_whoever_cancels_it() {
    let project = Project::new();
    let clock = Arc::new(ManualClock::new());
    let store = store(&project, &clock).await;
    queue(&store, &[("run-1", "energy")]).await;
    let run = new_run("run-1", "energy").id;
    // Its process died in the middle of it.
    store.take(&run, &tidemill::owner::Owner::this_process().unwrap()).await.unwrap();
    store.cancel(&run).await.unwrap();
    let opened = project.open();
    let lock = Daemon::lock(&opened).unwrap();
    for _ in 0..2 {
        cancel::end_alone(&opened, &store, &lock, &run).await.unwrap();
    }
    let row = store.run(&run).await.unwrap().unwrap();
    assert_eq!(row.state, tidemill::event::state::RunState::Cancelled);
}
