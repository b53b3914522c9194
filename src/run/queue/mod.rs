//! The queue: runs that wait for a worker, so many at once, each workflow in its turn.

mod again;
mod cancel;
mod pick;
mod refuse;
mod settle;

use std::collections::{BTreeMap, HashMap};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::config::Project;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::state::RunState;
use crate::owner::Owner;
use crate::run::intake::finish::Putter;
use crate::run::intake::notice::{Notice, Tell};
use crate::run::intake::stop::Stop;
use crate::run::pause::Pause;
use crate::run::reload::in_force::InForce;
use crate::run::room::Room;
use crate::store::{RunRow, Store};
use crate::workflow::queueing::Queueing;
use pick::{InWork, Limits, pick};
use settle::Left;

pub(crate) use again::may_pass;
pub(crate) use settle::requeue;

/// Who carries a run out.
#[async_trait]
pub trait Conduct: Send + Sync {
    /// Carries `run` out and gives its end state; everything that happened is in its log by then.
    ///
    /// When `stop` fires it leaves soon and may leave the run without an end: it goes on later.
    async fn conduct(&self, run: &RunRow, stop: CancellationToken) -> Result<RunState>;
}

/// Takes runs from the store and has them carried out.
pub(crate) struct Queue {
    pub(crate) project: Project,
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) conduct: Arc<dyn Conduct>,
    /// This process.
    pub(crate) holder: Owner,
    /// The workflows, and with them how the runs of each stand in it.
    pub(crate) in_force: InForce,
    pub(crate) putter: Arc<Putter>,
    pub(crate) tell: Tell,
    pub(crate) room: Room,
    /// Woken when runs were queued.
    pub(crate) wake: Arc<Notify>,
}

/// What is in work.
#[derive(Default)]
struct Work {
    tasks: JoinSet<Result<RunState>>,
    running: HashMap<Id, Running>,
    /// Runs that left their worker while something stood in the way of their end.
    open: Vec<Left>,
}

/// A run with a worker.
struct Running {
    row: RunRow,
    /// Tells it alone to stop.
    stop: CancellationToken,
    /// Ends its worker wherever it is.
    abort: AbortHandle,
    /// When it was told to stop, by the clock.
    told: Option<Duration>,
}

impl Queue {
    /// A run that is broken off has this long to leave cleanly.
    const GRACE: Duration = Duration::from_secs(20);

    /// Other processes queue runs as well, and cannot wake this one.
    const POLL: Duration = Duration::from_secs(1);

    /// Works until it is told to stop, and then until no run is in work. When the queue itself fails, its runs are
    /// broken off cleanly before the error is returned.
    pub(crate) async fn work(&self, stop: &Stop) -> Result<()> {
        let mut work = Work::default();
        let worked = self.rounds(&mut work, stop).await;
        if worked.is_err() {
            stop.interrupt();
            let mut grace = pin!(self.clock.sleep(Self::GRACE));
            loop {
                tokio::select! {
                    ended = work.tasks.join_next_with_id() => match ended {
                        Some(ended) => {
                            if let Some(mut left) = left(ended, &mut work.running) {
                                // What the store cannot record now, recovery finds at the next start.
                                let _ = self.settle(&mut left, stop).await;
                            }
                        }
                        None => break,
                    },
                    () = &mut grace => break,
                }
            }
        }
        worked
    }

    async fn rounds(&self, work: &mut Work, stop: &Stop) -> Result<()> {
        let mut said = false;
        let mut pause = Pause::new("starting runs", Arc::clone(&self.clock), self.tell.clone());
        let mut grace = pin!(self.out_of_grace(stop));
        let mut aborted = false;
        loop {
            if !stop.is_finishing() && pause.note(self.store.is_to_drain(&self.holder).await)? == Some(true) {
                stop.finish();
            }
            // Asked once a round: a stop that comes while the queue is filled must still end the wait below.
            let finishing = stop.is_finishing();
            let round = async {
                self.settle_open(work, stop).await?;
                self.cancel_asked(work).await?;
                if finishing { Ok(()) } else { self.fill(work, stop).await }
            };
            if pause.note(round.await)?.is_some() {
                pause.over();
            }
            if finishing && work.tasks.is_empty() {
                return Ok(());
            }
            if finishing && !said {
                said = true;
                self.tell.say(Notice::Finishing(work.tasks.len()));
            }
            let poll = if pause.holds() || !work.open.is_empty() { Pause::AGAIN } else { Self::POLL };
            tokio::select! {
                Some(ended) = work.tasks.join_next_with_id(), if !work.tasks.is_empty() => {
                    work.open.extend(left(ended, &mut work.running));
                }
                () = self.wake.notified() => {}
                () = self.clock.sleep(poll) => {}
                () = stop.finishing(), if !finishing => {}
                () = &mut grace, if !aborted => {
                    aborted = true;
                    work.tasks.abort_all();
                }
            }
        }
    }

    /// Gives every free worker a run that waits.
    async fn fill(&self, work: &mut Work, stop: &Stop) -> Result<()> {
        let limits = self.limits();
        if work.running.len() >= limits.total {
            return Ok(());
        }
        let paused = self.store.paused().await?;
        if paused.all {
            return Ok(());
        }
        let mut waiting = self.store.waiting(u32::try_from(limits.total).unwrap_or(u32::MAX)).await?;
        waiting.retain(|run| !paused.workflows.contains(&run.workflow));
        let in_work: Vec<InWork> = work
            .running
            .values()
            .map(|Running { row, .. }| InWork { workflow: row.workflow.clone(), model: row.model.clone() })
            .collect();
        let next = pick(&waiting, &in_work, &limits);
        if next.is_empty() {
            return Ok(());
        }
        self.room.check()?;
        for run in next {
            let Some(row) = self.store.take(&run, &self.holder).await? else { continue };
            match self.refuse(&row).await {
                Ok(false) => self.begin(work, row, stop),
                Ok(true) => work.open.push(Left::new(row, None)),
                // It is ours, and nobody else would end it.
                Err(error) => work.open.push(Left::new(row, Some(error))),
            }
        }
        Ok(())
    }

    fn begin(&self, work: &mut Work, row: RunRow, stop: &Stop) {
        let (conduct, run, stop) = (Arc::clone(&self.conduct), row.clone(), stop.token().child_token());
        let token = stop.clone();
        let abort = work.tasks.spawn(async move { conduct.conduct(&run, token).await });
        work.running.insert(abort.id(), Running { row, stop, abort, told: None });
    }

    /// How the runs of each workflow stand in the queue.
    fn queueing(&self) -> BTreeMap<String, Queueing> {
        self.in_force.routes().iter().map(|route| (route.workflow.clone(), route.queueing)).collect()
    }

    fn limits(&self) -> Limits {
        let config = &self.project.config;
        let models = config.models.iter();
        let limited = models.filter_map(|(name, model)| Some((name.clone(), model.concurrency?)));
        Limits { total: config.watch.concurrency, workflows: self.queueing(), models: limited.collect() }
    }

    async fn out_of_grace(&self, stop: &Stop) {
        stop.interrupting().await;
        self.clock.sleep(Self::GRACE).await;
    }
}

/// The run that left its worker, and how.
fn left(
    ended: Result<(Id, Result<RunState>), JoinError>,
    running: &mut HashMap<Id, Running>,
) -> Option<Left> {
    let (id, error) = match ended {
        Ok((id, outcome)) => (id, outcome.err()),
        Err(error) => (
            error.id(),
            Some(
                Diagnostic::new("run::broken", "the run broke off inside tidemill")
                    .cause(error)
                    .help("this is a mistake in tidemill; the file is kept in the failed folder"),
            ),
        ),
    };
    running.remove(&id).map(|run| Left::new(run.row, error))
}
