//! The end of a run's stay in the queue: it has an end or waits again, and its file is put away.

use super::again::{Passing, again, passing};
use super::{Queue, Work};
use crate::artifact::{self, Destination};
use crate::diagnostic::{Diagnostic, Result};
use crate::event::What;
use crate::event::id::RunId;
use crate::event::state::RunState;
use crate::run::folder::RunFolder;
use crate::run::intake::notice::Notice;
use crate::run::intake::stop::Stop;
use crate::run::journal::Journal;
use crate::run::pause::passes;
use crate::run::published::end_if_published;
use crate::store::{Lease, RunRow, Store};

/// A run that left its worker.
#[derive(Debug)]
pub(super) struct Left {
    row: RunRow,
    error: Option<Diagnostic>,
    step: Step,
}

/// What there still is to do for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Its end is to be recorded.
    End,
    /// Its file is to be put away.
    PutAway,
    /// The same, and why it could not be was said.
    PutAwayAtLast,
}

impl Left {
    pub(super) fn new(row: RunRow, error: Option<Diagnostic>) -> Self {
        Self { row, error, step: Step::End }
    }

    /// Whether another took the run: it is not ours to end.
    fn is_lost(&self, now: &RunRow) -> bool {
        now.fence != self.row.fence || self.error.as_ref().is_some_and(|error| error.code() == Lease::LOST)
    }
}

/// Whether a run is through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settled {
    /// There is nothing more to do for it.
    Through,
    /// Its file stands in the way; it is tried again.
    Open,
}

impl Queue {
    /// Settles what left its worker. What something passing stands in the way of, stays open.
    pub(super) async fn settle_open(&self, work: &mut Work, stop: &Stop) -> Result<()> {
        let mut held = Ok(());
        for mut left in std::mem::take(&mut work.open) {
            match self.settle(&mut left, stop).await {
                Ok(Settled::Through) => {}
                Ok(Settled::Open) => work.open.push(left),
                Err(error) if passes(&error) => {
                    work.open.push(left);
                    held = Err(error);
                }
                Err(error) => return Err(error),
            }
        }
        held
    }

    /// Sees to it that a run has an end or waits again, and puts its file away.
    pub(super) async fn settle(&self, left: &mut Left, stop: &Stop) -> Result<Settled> {
        if left.step == Step::End {
            if !self.end(left, stop).await?.is_end() {
                return Ok(Settled::Through);
            }
            left.step = Step::PutAway;
        }
        let Some(input) = left.row.input else { return Ok(Settled::Through) };
        match self.putter.put_away(input).await {
            Ok(()) => Ok(Settled::Through),
            Err(error) if passes(&error) => Err(error),
            Err(error) => {
                // The file is kept where it is; the other runs go on.
                if left.step != Step::PutAwayAtLast {
                    left.step = Step::PutAwayAtLast;
                    self.tell.say(Notice::Warned(error.report()));
                }
                Ok(Settled::Open)
            }
        }
    }

    /// Gives the run an end, or has it wait again. Gives where it stands then.
    async fn end(&self, left: &Left, stop: &Stop) -> Result<RunState> {
        let now = self.store.run(&left.row.id).await?;
        let row = now.as_ref().unwrap_or(&left.row);
        let warn = || {
            if let Some(error) = &left.error {
                self.tell.say(Notice::Warned(error.report()));
            }
        };
        if row.state.is_end() {
            warn();
            return Ok(row.state);
        }
        if left.is_lost(row) {
            warn();
            return Ok(RunState::Queued);
        }
        if end_if_published(&self.project, &self.store, row).await? {
            return Ok(RunState::Succeeded);
        }
        let journal = Journal::of(&self.project, &self.store, row);
        if row.cancel_at.is_some() {
            journal.cancel(row).await?;
            self.clear(row);
            return Ok(RunState::Cancelled);
        }
        if stop.is_interrupting() {
            let reason = Some("it was stopped; it goes on later".to_owned());
            let waiting = What::StateEntered { state: RunState::Queued, reason };
            // It did not bring the process down, and may do so as often as any other.
            self.store.give_back(&row.lease(), waiting).await?;
            self.tell.say(Notice::Requeued(left.row.id.clone()));
            return Ok(RunState::Queued);
        }
        if let Some(error) = &left.error
            && self.try_again(left, row, error).await?
        {
            return Ok(RunState::Queued);
        }
        let unfinished = || {
            Diagnostic::new("run::unfinished", "the run stopped without a result")
                .help("`tidemill logs` shows how far it came")
        };
        match &left.error {
            Some(error) => journal.fail(row, error).await?,
            None => journal.fail(row, &unfinished()).await?,
        }
        self.clear(row);
        Ok(RunState::Failed)
    }

    /// Removes what a run kept for going on that has ended without a worker, and what it had staged.
    pub(super) fn clear(&self, row: &RunRow) {
        let destination = Destination::of(self.project.outbox(), &row.workflow, &row.inputs, &row.id);
        artifact::forget_staged(&destination, &row.id);
        RunFolder::new(&self.project.state(), &row.id).tidy_after(row);
    }

    /// Has a run wait until what it failed by may have passed. Gives whether there is another try.
    async fn try_again(&self, left: &Left, row: &RunRow, error: &Diagnostic) -> Result<bool> {
        let Some(passing) = passing(error) else { return Ok(false) };
        // What was paid for is not to be paid for again and again, whoever is at fault.
        let has_begun = row.turns > left.row.turns;
        let kind = if has_begun { Passing::Service } else { passing };
        let retry = self.queueing().get(&row.workflow).copied().unwrap_or_default().retry;
        let again = again(&row.id, row.again.as_ref(), kind, &retry, error, self.clock.now());
        let Some(again) = again else { return Ok(false) };
        // Attempts count what brought the process down.
        self.store.give_back(&row.lease(), What::Postponed { again: again.clone() }).await?;
        self.tell.say(Notice::TriedAgain { run: row.id.clone(), again });
        Ok(true)
    }
}

/// Has a run wait again; it goes on where it was.
pub(crate) async fn requeue(store: &Store, run: &RunId, reason: &str) -> Result<()> {
    let waiting = What::StateEntered { state: RunState::Queued, reason: Some(reason.to_owned()) };
    store.append(run, waiting).await.map(drop)
}
