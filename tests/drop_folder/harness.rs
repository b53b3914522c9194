//! A daemon at work on runs that a double carries out, in a time that only the test moves.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tidemill::diagnostic::{Diagnostic, Result};
use tidemill::event::What;
use tidemill::event::finding::Finding;
use tidemill::event::state::{InputState, RunState};
use tidemill::event::usage::Usage;
use tidemill::run::intake::notice::{Notice, Tell};
use tidemill::run::intake::stop::Stop;
use tidemill::run::intake::{Daemon, WorkflowRoute};
use tidemill::run::queue::Conduct;
use tidemill::store::{RunRow, Store};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::route;
use crate::support::clock::ManualClock;
use crate::support::project::Project;

/// What the double does with the runs it gets, one after the other; `Succeed` when nothing is left to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Succeed,
    End(RunState),
    /// It fails with this code.
    Err(&'static str),
    /// It publishes, and then nothing can be recorded any more.
    PublishThenFull,
    Panic,
    /// Until it is told to stop.
    Wait,
    /// Until the test lets it go.
    Hold,
}

/// Carries runs out by the book of a test.
pub(super) struct Double {
    store: Store,
    acts: Mutex<VecDeque<Act>>,
    pub(super) let_go: Notify,
    begun: mpsc::UnboundedSender<RunRow>,
    working: AtomicUsize,
    pub(super) most: AtomicUsize,
}

#[async_trait]
impl Conduct for Double {
    async fn conduct(&self, run: &RunRow, stop: CancellationToken) -> Result<RunState> {
        let now = self.working.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        let done = self.act(run, stop).await;
        self.working.fetch_sub(1, Ordering::SeqCst);
        done
    }
}

impl Double {
    async fn act(&self, run: &RunRow, stop: CancellationToken) -> Result<RunState> {
        let preparing = What::StateEntered { state: RunState::Preparing, reason: None };
        self.store.append(&run.id, preparing).await?;
        let _ = self.begun.send(run.clone());
        let act = self.acts.lock().unwrap().pop_front().unwrap_or(Act::Succeed);
        match act {
            Act::Succeed => self.end(run, RunState::Succeeded).await,
            Act::End(state) => self.end(run, state).await,
            Act::PublishThenFull => {
                let publishing = What::StateEntered { state: RunState::Publishing, reason: None };
                self.store.append(&run.id, publishing).await?;
                let folder = format!("outbox/energy/{}", run.id);
                self.store.append(&run.id, What::Published { folder, artifacts: Vec::new() }).await?;
                Err(Diagnostic::new("store::disk_full", "it went wrong").help("mend it"))
            }
            Act::Err(code) => Err(Diagnostic::new(code, "it went wrong").help("mend it")),
            Act::Panic => panic!("a mistake in a scene"),
            Act::Wait => {
                stop.cancelled().await;
                Ok(RunState::Running)
            }
            Act::Hold => {
                self.let_go.notified().await;
                self.end(run, RunState::Succeeded).await
            }
        }
    }

    async fn end(&self, run: &RunRow, state: RunState) -> Result<RunState> {
        let findings = vec![Finding::new("csv.min_rows", "it has no rows").path("output/a.csv")];
        if state == RunState::Rejected {
            self.store.append(&run.id, What::ChecksEnded { attempt: 0, findings }).await?;
        }
        let report = (state != RunState::Succeeded).then(|| {
            Diagnostic::new("run::told", format!("the test wants {state}")).help("ask the test").report()
        });
        let ended = What::RunEnded { state, report, usage: Usage::default(), cost: None };
        self.store.append(&run.id, ended).await?;
        Ok(state)
    }
}

/// A daemon at work, in a time that only the test moves.
pub(super) struct Watching {
    pub(super) store: Store,
    pub(super) clock: Arc<ManualClock>,
    pub(super) double: Arc<Double>,
    begun: mpsc::UnboundedReceiver<RunRow>,
    pub(super) notices: mpsc::UnboundedReceiver<Notice>,
    pub(super) stop: Stop,
    task: tokio::task::JoinHandle<Result<()>>,
}

pub(super) async fn open(project: &Project, routes: Vec<WorkflowRoute>, acts: &[Act]) -> Result<Watching> {
    let clock = Arc::new(ManualClock::new());
    let opened = project.open();
    let store = Store::open_with(&opened.state(), clock.clone()).await?;
    let (starts, begun) = mpsc::unbounded_channel();
    let double = Arc::new(Double {
        store: store.clone(),
        acts: Mutex::new(acts.iter().copied().collect()),
        let_go: Notify::new(),
        begun: starts,
        working: AtomicUsize::new(0),
        most: AtomicUsize::new(0),
    });
    let (say, notices) = mpsc::unbounded_channel();
    let tell = Tell::to(move |notice| drop(say.send(notice)));
    let lock = Daemon::lock(&opened)?;
    let daemon =
        Daemon::open(lock, &opened, store.clone(), clock.clone(), routes, double.clone(), tell).await?;
    let stop = Stop::new();
    let task = tokio::spawn(daemon.run(stop.clone()));
    Ok(Watching { store, clock, double, begun, notices, stop, task })
}

pub(super) async fn watching(project: &Project, acts: &[Act]) -> Watching {
    open(project, vec![route("energy", "**/*.csv")], acts).await.unwrap()
}

impl Watching {
    /// Lets time pass until something comes out of `next`.
    async fn pass<T>(clock: &ManualClock, next: impl Future<Output = T>) -> T {
        let passing = async {
            loop {
                clock.give_way().await;
                clock.advance(Duration::from_millis(50));
            }
        };
        tokio::select! {
            biased;
            done = soon(next) => done,
            () = passing => unreachable!("time passes for ever"),
        }
    }

    pub(super) async fn put_away(&mut self) -> (InputState, PathBuf) {
        loop {
            if let Notice::PutAway { state, to, .. } =
                Self::pass(&self.clock, self.notices.recv()).await.unwrap()
            {
                return (state, to.map(|to| to.as_path().to_owned()).unwrap_or_default());
            }
        }
    }

    pub(super) async fn begun(&mut self) -> RunRow {
        Self::pass(&self.clock, self.begun.recv()).await.unwrap()
    }

    pub(super) async fn notice(&mut self, wanted: fn(&Notice) -> bool) -> Notice {
        loop {
            let notice = Self::pass(&self.clock, self.notices.recv()).await.unwrap();
            if wanted(&notice) {
                return notice;
            }
        }
    }

    pub(super) async fn end(self) -> Result<()> {
        let Self { clock, task, store, double, .. } = self;
        let done = Self::pass(&clock, task).await.unwrap();
        drop((store, double));
        done
    }

    pub(super) async fn finish(self) {
        self.stop.finish();
        self.end().await.unwrap();
    }
}

/// Only a guard against hanging for ever: nothing is measured.
pub(super) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(120), what).await.expect("a hint")
}
