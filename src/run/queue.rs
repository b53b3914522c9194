//! The queue: runs of dropped files and of schedules, so many at once, oldest first.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Notify;
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::config::Project;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::What;
use crate::event::id::RunId;
use crate::event::state::RunState;
use crate::run::intake::finish::Putter;
use crate::run::intake::notice::{Notice, Tell};
use crate::run::intake::stop::Stop;
use crate::run::journal::Journal;
use crate::store::{RunRow, Store};
use crate::workflow::schedule::TRIGGER;

/// Who carries a run out.
#[async_trait]
pub trait Conduct: Send + Sync {
    /// Carries `run` out and gives its end state; everything that happened is in its log by then.
    ///
    /// When `stop` fires it leaves soon and may leave the run without an end: it starts over later.
    async fn conduct(&self, run: &RunRow, stop: CancellationToken) -> Result<RunState>;
}

/// Takes runs from the store and has them carried out.
pub(crate) struct Queue {
    pub(crate) project: Project,
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) conduct: Arc<dyn Conduct>,
    pub(crate) concurrency: usize,
    pub(crate) putter: Arc<Putter>,
    pub(crate) tell: Tell,
    /// Woken when runs were queued.
    pub(crate) wake: Arc<Notify>,
}

type Ended = Result<(Id, Result<RunState>), JoinError>;

impl Queue {
    /// A run that is broken off has this long to leave cleanly.
    const GRACE: Duration = Duration::from_secs(20);

    /// Works until it is told to stop, and then until no run is in work. When the queue itself fails, its runs are
    /// broken off cleanly before the error is returned.
    pub(crate) async fn work(&self, stop: &Stop) -> Result<()> {
        let mut tasks: JoinSet<Result<RunState>> = JoinSet::new();
        let mut running: HashMap<Id, RunRow> = HashMap::new();
        let worked = self.rounds(&mut tasks, &mut running, stop).await;
        if worked.is_err() {
            stop.interrupt();
            let mut grace = pin!(self.clock.sleep(Self::GRACE));
            loop {
                tokio::select! {
                    ended = tasks.join_next_with_id() => match ended {
                        // What the store cannot record now, recovery finds at the next start.
                        Some(ended) => drop(self.ended(ended, &mut running, stop).await),
                        None => break,
                    },
                    () = &mut grace => break,
                }
            }
        }
        worked
    }

    async fn rounds(
        &self,
        tasks: &mut JoinSet<Result<RunState>>,
        running: &mut HashMap<Id, RunRow>,
        stop: &Stop,
    ) -> Result<()> {
        let mut said = false;
        let mut grace = pin!(self.out_of_grace(stop));
        let mut aborted = false;
        loop {
            // Asked once a round: a stop that comes while the queue is filled must still end the wait below.
            let finishing = stop.is_finishing();
            if !finishing {
                self.fill(tasks, running, stop).await?;
            } else if tasks.is_empty() {
                return Ok(());
            } else if !said {
                said = true;
                self.tell.say(Notice::Finishing(tasks.len()));
            }
            tokio::select! {
                Some(ended) = tasks.join_next_with_id(), if !tasks.is_empty() => {
                    self.ended(ended, running, stop).await?;
                }
                () = self.wake.notified() => {}
                () = stop.finishing(), if !finishing => {}
                () = &mut grace, if !aborted => {
                    aborted = true;
                    tasks.abort_all();
                }
            }
        }
    }

    /// Gives every free worker the oldest run that waits.
    async fn fill(
        &self,
        tasks: &mut JoinSet<Result<RunState>>,
        running: &mut HashMap<Id, RunRow>,
        stop: &Stop,
    ) -> Result<()> {
        let free = self.concurrency.saturating_sub(running.len());
        if free == 0 {
            return Ok(());
        }
        // A run just started may still count as waiting in the store.
        let limit = u32::try_from(self.concurrency).unwrap_or(u32::MAX);
        let waiting = self.store.waiting(limit).await?;
        let fresh = |row: &RunRow| !running.values().any(|known| known.id == row.id);
        let next: Vec<RunRow> = waiting.into_iter().filter(fresh).take(free).collect();
        for mut row in next {
            if self.is_too_late(&row).await? {
                continue;
            }
            self.store.count_attempt(&row.id).await?;
            row.attempts = row.attempts.saturating_add(1);
            let (conduct, run, token) = (Arc::clone(&self.conduct), row.clone(), stop.token());
            let task = tasks.spawn(async move { conduct.conduct(&run, token).await });
            running.insert(task.id(), row);
        }
        Ok(())
    }

    /// Ends a run that waited until the deadline of its schedule. One that has begun once goes on.
    async fn is_too_late(&self, row: &RunRow) -> Result<bool> {
        if row.trigger != TRIGGER || row.attempts > 0 {
            return Ok(false);
        }
        let deadline = self.store.fired(&row.id).await?.and_then(|fired| fired.start_by);
        let Some(deadline) = deadline.filter(|deadline| *deadline < self.clock.now()) else {
            return Ok(false);
        };
        let why = Diagnostic::new(
            "schedule::too_late",
            format!("it was to begin by {deadline}, and waited for longer"),
        )
        .help("raise `start_deadline` of the schedule, or `watch.concurrency` in tidemill.toml");
        Journal::of(&self.project, &self.store, &row.id).fail(row, &why).await?;
        // What waited behind it may start now.
        self.wake.notify_one();
        Ok(true)
    }

    /// A run left its worker: sees to it that it has an end or waits again, and puts its file away.
    async fn ended(&self, ended: Ended, running: &mut HashMap<Id, RunRow>, stop: &Stop) -> Result<()> {
        let (id, outcome) = match ended {
            Ok((id, outcome)) => (id, outcome),
            Err(error) => (
                error.id(),
                Err(Diagnostic::new("run::broken", "the run broke off inside tidemill")
                    .cause(error)
                    .help("this is a mistake in tidemill; the file is kept in the failed folder")),
            ),
        };
        let Some(row) = running.remove(&id) else {
            return Ok(());
        };
        let now = self.store.run(&row.id).await?;
        if now.is_some_and(|row| row.state.is_end()) {
            if let Err(error) = outcome {
                self.tell.say(Notice::Warned(error.report()));
            }
        } else if stop.is_interrupting() {
            requeue(&self.store, &row.id, "it was stopped; it starts over").await?;
            self.tell.say(Notice::Requeued(row.id));
            return Ok(());
        } else {
            let error = outcome.err().unwrap_or_else(|| {
                Diagnostic::new("run::unfinished", "the run stopped without a result")
                    .help("`tidemill logs` shows how far it came")
            });
            Journal::of(&self.project, &self.store, &row.id).fail(&row, &error).await?;
        }
        if let Some(input) = row.input
            && let Err(error) = self.putter.put_away(input).await
        {
            // The file is kept where it is and is put away at the next start; the other runs go on.
            self.tell.say(Notice::Warned(error.report()));
        }
        Ok(())
    }

    async fn out_of_grace(&self, stop: &Stop) {
        stop.interrupting().await;
        self.clock.sleep(Self::GRACE).await;
    }
}

/// Sends a run back to the start of its story.
pub(crate) async fn requeue(store: &Store, run: &RunId, reason: &str) -> Result<()> {
    let waiting = What::StateEntered { state: RunState::Queued, reason: Some(reason.to_owned()) };
    store.append(run, waiting).await.map(drop)
}
