//! A daemon at work, in a time that only the test moves.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use tidemill::clock::Clock as _;
use tidemill::diagnostic::Result;
use tidemill::event::What;
use tidemill::event::id::{Digest, RunId};
use tidemill::event::state::RunState;
use tidemill::event::usage::Usage;
use tidemill::run::intake::notice::{Notice, Tell};
use tidemill::run::intake::stop::Stop;
use tidemill::run::intake::{Daemon, WorkflowRoute};
use tidemill::run::queue::Conduct;
use tidemill::store::{RunFilter, RunRow, Store};
use tidemill::workflow::schedule::Schedule;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::at;
use crate::support::clock::ManualClock;
use crate::support::project::Project;

/// When the runs of a double end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    AtOnce,
    /// When the test lets them.
    LetGo,
}

pub(super) struct Double {
    pub(super) store: Store,
    end: End,
    pub(super) let_go: Notify,
    ended: mpsc::UnboundedSender<RunId>,
}

#[async_trait]
impl Conduct for Double {
    async fn conduct(&self, run: &RunRow, _: CancellationToken) -> Result<RunState> {
        if self.end == End::LetGo {
            self.let_go.notified().await;
        }
        let ended =
            What::RunEnded { state: RunState::Succeeded, report: None, usage: Usage::default(), cost: None };
        self.store.append(&run.id, ended).await?;
        let _ = self.ended.send(run.id.clone());
        Ok(RunState::Succeeded)
    }
}

/// A daemon at work.
pub(super) struct Watching {
    pub(super) store: Store,
    pub(super) clock: Arc<ManualClock>,
    pub(super) double: Arc<Double>,
    ended: mpsc::UnboundedReceiver<RunId>,
    notices: mpsc::UnboundedReceiver<Notice>,
    stop: Stop,
    task: tokio::task::JoinHandle<Result<()>>,
}

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), what).await.unwrap()
}

/// Opens a daemon when the wall shows `now`.
pub(super) async fn open(project: &Project, now: &str, schedule: &Schedule, end: End) -> Watching {
    let clock = Arc::new(ManualClock::new());
    clock.set_wall(at(now));
    let opened = project.open();
    let store = Store::open_with(&opened.state(), clock.clone()).await.unwrap();
    let (tells_end, ended) = mpsc::unbounded_channel();
    let double = Arc::new(Double { store: store.clone(), end, let_go: Notify::new(), ended: tells_end });
    let (say, notices) = mpsc::unbounded_channel();
    let tell = Tell::to(move |notice| drop(say.send(notice)));
    let route = WorkflowRoute {
        workflow: "report".to_owned(),
        drops: Vec::new(),
        schedules: vec![schedule.clone()],
        webhooks: Vec::new(),
        model: "analyst".to_owned(),
        bundle: Digest::of("script"),
        sandbox: tidemill::workflow::sandbox::Kind::None,
        queueing: tidemill::workflow::queueing::Queueing::default(),
    };
    let daemon = Daemon::open(
        Daemon::lock(&opened).unwrap(),
        &opened,
        store.clone(),
        clock.clone(),
        vec![route],
        double.clone(),
        tell,
    );
    let daemon = daemon.await.unwrap();
    let stop = Stop::new();
    let task = tokio::spawn(daemon.run(stop.clone()));
    Watching { store, clock, double, ended, notices, stop, task }
}

impl Watching {
    /// Lets time pass until something comes out of `next`, but not while the daemon has something to do.
    async fn pass<T>(clock: &ManualClock, next: impl Future<Output = T>) -> T {
        /// The intake, the schedules and the queue.
        const SLEEPERS: usize = 3;
        let passing = async {
            loop {
                // Those who were woken go to work before they are counted.
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                }
                if clock.sleepers() >= SLEEPERS {
                    clock.advance(Duration::from_secs(5));
                }
            }
        };
        tokio::select! {
            biased;
            done = soon(next) => done,
            () = passing => unreachable!("time passes for ever"),
        }
    }

    /// The next instant that made a run.
    pub(super) async fn fired(&mut self) -> Timestamp {
        loop {
            if let Notice::Fired { at, .. } = Self::pass(&self.clock, self.notices.recv()).await.unwrap() {
                return at;
            }
        }
    }

    /// The end of a run that was queued; no time passes.
    pub(super) async fn ended(&mut self) -> RunId {
        soon(self.ended.recv()).await.unwrap()
    }

    /// Lets the loop look at a clock that was set.
    pub(super) async fn look(&self) {
        Self::pass(&self.clock, self.clock.sleep(Duration::from_secs(40))).await;
    }

    pub(super) async fn instants(&self) -> Vec<String> {
        let mut found = Vec::new();
        for run in self.store.runs(&RunFilter::default()).await.unwrap() {
            let fired = self.store.fired(&run.id).await.unwrap().unwrap();
            found.push(format!("{} +{}", fired.at, fired.missed));
        }
        found.reverse();
        found
    }

    pub(super) async fn finish(self) {
        self.stop.finish();
        Self::pass(&self.clock, self.task).await.unwrap().unwrap();
    }
}
