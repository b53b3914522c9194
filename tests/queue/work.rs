//! A daemon that works off runs of a test, in a time that only the test moves.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tidemill::diagnostic::{Diagnostic, Result};
use tidemill::event::What;
use tidemill::event::id::{Digest, RunId};
use tidemill::event::state::RunState;
use tidemill::event::trigger::Trigger;
use tidemill::event::usage::Usage;
use tidemill::run::intake::notice::{Notice, Tell};
use tidemill::run::intake::stop::Stop;
use tidemill::run::intake::{Daemon, WorkflowRoute};
use tidemill::run::queue::Conduct;
use tidemill::store::{NewRun, RunRow, Store};
use tidemill::workflow::queueing::Queueing;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use crate::support::clock::ManualClock;
use crate::support::project::Project;

/// What becomes of a run in the hands of the double.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Succeed,
    /// It fails with this code, and may be tried again.
    Err(&'static str),
    /// It goes on until it is told to stop.
    Wait,
    /// It does not listen.
    Deaf,
    /// Until the test lets it go.
    Hold,
    /// Another takes it meanwhile.
    Lose,
}

pub(super) struct Double {
    store: Store,
    acts: Mutex<VecDeque<Act>>,
    pub(super) let_go: Notify,
    begun: mpsc::UnboundedSender<RunRow>,
}

#[async_trait]
impl Conduct for Double {
    async fn conduct(&self, run: &RunRow, stop: CancellationToken) -> Result<RunState> {
        let lease = run.lease();
        let preparing = What::StateEntered { state: RunState::Preparing, reason: None };
        self.store.append_under(&lease, preparing).await?;
        let act = self.acts.lock().unwrap().pop_front().unwrap_or(Act::Succeed);
        let _ = self.begun.send(run.clone());
        match act {
            Act::Succeed => {}
            Act::Err(code) => return Err(Diagnostic::new(code, "it went wrong").help("mend it")),
            Act::Wait => {
                stop.cancelled().await;
                return Ok(RunState::Running);
            }
            Act::Deaf => std::future::pending().await,
            Act::Hold => self.let_go.notified().await,
            Act::Lose => self.store.release_all().await?,
        }
        self.store.append_under(&lease, ended(RunState::Succeeded)).await?;
        Ok(RunState::Succeeded)
    }
}

pub(super) fn ended(state: RunState) -> What {
    What::RunEnded { state, report: None, usage: Usage::default(), cost: None }
}

/// A daemon at work.
pub(super) struct Mill {
    pub(super) store: Store,
    pub(super) clock: Arc<ManualClock>,
    pub(super) double: Arc<Double>,
    begun: mpsc::UnboundedReceiver<RunRow>,
    notices: mpsc::UnboundedReceiver<Notice>,
    pub(super) stop: Stop,
    task: tokio::task::JoinHandle<Result<()>>,
}

/// A store of the project by a clock that stands still.
pub(super) async fn store(project: &Project, clock: &Arc<ManualClock>) -> Store {
    Store::open_with(&project.open().state(), clock.clone()).await.unwrap()
}

/// A run of `workflow` that waits.
pub(super) fn new_run(id: &str, workflow: &str) -> NewRun {
    let at = "2026-11-30T23:00:00Z".parse().unwrap();
    let id = RunId::parse(id).unwrap();
    NewRun::new(id, workflow, Trigger::Webhook, Digest::of("script"), "analyst", at)
}

pub(super) async fn queue(store: &Store, runs: &[(&str, &str)]) {
    for (id, workflow) in runs {
        store.queue_run(new_run(id, workflow)).await.unwrap();
    }
}

pub(super) fn route(workflow: &str, queueing: Queueing) -> WorkflowRoute {
    WorkflowRoute {
        workflow: workflow.to_owned(),
        drops: Vec::new(),
        schedules: Vec::new(),
        webhooks: Vec::new(),
        model: "analyst".to_owned(),
        bundle: Digest::of("script"),
        sandbox: tidemill::workflow::sandbox::Kind::None,
        queueing,
    }
}

impl Mill {
    pub(super) async fn start(
        project: &Project,
        clock: &Arc<ManualClock>,
        routes: Vec<WorkflowRoute>,
        acts: &[Act],
    ) -> Self {
        let opened = project.open();
        let store = store(project, clock).await;
        let (starts, begun) = mpsc::unbounded_channel();
        let acts = Mutex::new(acts.iter().copied().collect());
        let double = Arc::new(Double { store: store.clone(), acts, let_go: Notify::new(), begun: starts });
        let (say, notices) = mpsc::unbounded_channel();
        let tell = Tell::to(move |notice| drop(say.send(notice)));
        let lock = Daemon::lock(&opened).unwrap();
        let (clock, conduct) = (clock.clone(), double.clone());
        let daemon = Daemon::open(lock, &opened, store.clone(), clock.clone(), routes, conduct, tell);
        let daemon = daemon.await.unwrap();
        let stop = Stop::new();
        let task = tokio::spawn(daemon.run(stop.clone()));
        Self { store, clock, double, begun, notices, stop, task }
    }

    /// Lets time pass until something comes out of `next`.
    pub(super) async fn pass<T>(clock: &ManualClock, next: impl Future<Output = T>) -> T {
        let passing = async {
            loop {
                clock.give_way().await;
                clock.advance(Duration::from_millis(50));
            }
        };
        // Only a guard against hanging for ever: nothing is measured.
        let soon = tokio::time::timeout(Duration::from_secs(30), next);
        tokio::select! {
            biased;
            done = soon => done.expect("it happens"),
            () = passing => unreachable!("time passes for ever"),
        }
    }

    pub(super) async fn begun(&mut self) -> RunRow {
        Self::pass(&self.clock, self.begun.recv()).await.unwrap()
    }

    /// The same, and no time passes.
    pub(super) async fn begun_now(&mut self) -> RunRow {
        tokio::time::timeout(Duration::from_secs(30), self.begun.recv()).await.expect("it happens").unwrap()
    }

    pub(super) async fn notice(&mut self, wanted: fn(&Notice) -> bool) -> Notice {
        loop {
            let notice = Self::pass(&self.clock, self.notices.recv()).await.unwrap();
            if wanted(&notice) {
                return notice;
            }
        }
    }

    /// Waits until a run has an end.
    pub(super) async fn end_of(&self, run: &str) -> RunRow {
        let run = RunId::parse(run).unwrap();
        let ended = async {
            loop {
                let row = self.store.run(&run).await.unwrap().unwrap();
                if row.state.is_end() {
                    return row;
                }
                tokio::task::yield_now().await;
            }
        };
        Self::pass(&self.clock, ended).await
    }

    /// Until all is done.
    pub(super) async fn ends(self) {
        Self::pass(&self.clock, self.task).await.unwrap().unwrap();
    }

    pub(super) async fn finish(self) {
        self.stop.finish();
        self.ends().await;
    }
}
