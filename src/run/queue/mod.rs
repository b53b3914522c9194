//! The queue: runs of dropped files and of schedules that wait for a worker, so many at once, oldest first.

mod again;
mod settle;
mod too_late;

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
use crate::event::id::RunId;
use crate::event::state::RunState;
use crate::run::intake::finish::Putter;
use crate::run::intake::notice::{Notice, Tell};
use crate::run::intake::stop::Stop;
use crate::run::pause::Pause;
use crate::run::room::Room;
use crate::store::{RunRow, Store};
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
    pub(crate) concurrency: usize,
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
    running: HashMap<Id, RunRow>,
    /// Runs that left their worker while something stood in the way of their end.
    open: Vec<Left>,
    /// Runs that failed by something that passes: how often, and when they are tried again by the clock.
    later: HashMap<RunId, Later>,
}

/// When a run is tried again.
#[derive(Debug, Clone, Copy, Default)]
struct Later {
    failures: u32,
    /// Those of them that may happen only so often.
    services: u32,
    at: Duration,
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
                                let _ = self.settle(&mut left, &mut work.later, stop).await;
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
            // Asked once a round: a stop that comes while the queue is filled must still end the wait below.
            let finishing = stop.is_finishing();
            let round = async {
                self.settle_open(work, stop).await?;
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
                () = self.clock.sleep(poll), if !finishing => {}
                () = stop.finishing(), if !finishing => {}
                () = &mut grace, if !aborted => {
                    aborted = true;
                    work.tasks.abort_all();
                }
            }
        }
    }

    /// Gives every free worker the oldest run that waits.
    async fn fill(&self, work: &mut Work, stop: &Stop) -> Result<()> {
        let free = self.concurrency.saturating_sub(work.running.len());
        if free == 0 {
            return Ok(());
        }
        // A run just started may still count as waiting in the store.
        let limit = u32::try_from(self.concurrency + work.later.len()).unwrap_or(u32::MAX);
        let waiting = self.store.waiting(limit).await?;
        let now = self.clock.elapsed();
        let is_due = |row: &RunRow| work.later.get(&row.id).is_none_or(|later| later.at <= now);
        let fresh = |row: &RunRow| !work.holds(row) && is_due(row);
        let next: Vec<RunRow> = waiting.into_iter().filter(fresh).take(free).collect();
        if next.is_empty() {
            return Ok(());
        }
        self.room.check()?;
        for mut row in next {
            if self.is_too_late(&row).await? {
                continue;
            }
            self.store.count_attempt(&row.id).await?;
            row.attempts = row.attempts.saturating_add(1);
            let (conduct, run, token) = (Arc::clone(&self.conduct), row.clone(), stop.token());
            let task = work.tasks.spawn(async move { conduct.conduct(&run, token).await });
            work.running.insert(task.id(), row);
        }
        Ok(())
    }

    async fn out_of_grace(&self, stop: &Stop) {
        stop.interrupting().await;
        self.clock.sleep(Self::GRACE).await;
    }
}

impl Work {
    /// Whether the run is in this process's hands.
    fn holds(&self, row: &RunRow) -> bool {
        self.running.values().any(|known| known.id == row.id) || self.open.iter().any(|left| left.is(row))
    }
}

/// The run that left its worker, and how.
fn left(ended: Result<(Id, Result<RunState>), JoinError>, running: &mut HashMap<Id, RunRow>) -> Option<Left> {
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
    running.remove(&id).map(|row| Left::new(row, error))
}
