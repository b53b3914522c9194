//! The end of a run's stay in the queue: it has an end or waits again, and its file is put away.

use std::collections::HashMap;

use super::again::{Passing, TRIES, passing, wait};
use super::{Later, Queue, Work};
use crate::diagnostic::{Diagnostic, Result};
use crate::event::What;
use crate::event::id::RunId;
use crate::event::state::RunState;
use crate::run::intake::notice::Notice;
use crate::run::intake::stop::Stop;
use crate::run::journal::Journal;
use crate::run::pause::passes;
use crate::run::published::end_if_published;
use crate::store::{RunRow, Store};
use crate::workflow::units::show_duration;

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

    pub(super) fn is(&self, row: &RunRow) -> bool {
        self.row.id == row.id
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
            match self.settle(&mut left, &mut work.later, stop).await {
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
    pub(super) async fn settle(
        &self,
        left: &mut Left,
        later: &mut HashMap<RunId, Later>,
        stop: &Stop,
    ) -> Result<Settled> {
        if left.step == Step::End {
            if self.end(left, later, stop).await? == RunState::Queued {
                return Ok(Settled::Through);
            }
            later.remove(&left.row.id);
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
    async fn end(&self, left: &Left, later: &mut HashMap<RunId, Later>, stop: &Stop) -> Result<RunState> {
        let now = self.store.run(&left.row.id).await?;
        let row = now.as_ref().unwrap_or(&left.row);
        if row.state.is_end() {
            if let Some(error) = &left.error {
                self.tell.say(Notice::Warned(error.report()));
            }
            return Ok(row.state);
        }
        if end_if_published(&self.project, &self.store, row).await? {
            return Ok(RunState::Succeeded);
        }
        if stop.is_interrupting() {
            requeue(&self.store, &left.row.id, "it was stopped; it goes on later").await?;
            // It did not bring the process down, and may do so as often as any other.
            self.store.forget_attempt(&left.row.id).await?;
            self.tell.say(Notice::Requeued(left.row.id.clone()));
            return Ok(RunState::Queued);
        }
        if let Some(error) = &left.error
            && let Some(passing) = passing(error)
        {
            // What was paid for is not to be paid for again and again, whoever is at fault.
            let has_begun = row.turns > left.row.turns;
            let kind = if has_begun { Passing::Service } else { passing };
            let services = later.get(&row.id).map_or(0, |later| later.services);
            if kind == Passing::Machine || services + 1 < TRIES {
                self.try_again(&left.row, error, kind, later).await?;
                return Ok(RunState::Queued);
            }
        }
        let unfinished = || {
            Diagnostic::new("run::unfinished", "the run stopped without a result")
                .help("`tidemill logs` shows how far it came")
        };
        let journal = Journal::of(&self.project, &self.store, &left.row.id);
        match &left.error {
            Some(error) => journal.fail(&left.row, error).await?,
            None => journal.fail(&left.row, &unfinished()).await?,
        }
        Ok(RunState::Failed)
    }
}

impl Queue {
    /// Has a run wait until what it failed by may have passed.
    async fn try_again(
        &self,
        row: &RunRow,
        error: &Diagnostic,
        passing: Passing,
        later: &mut HashMap<RunId, Later>,
    ) -> Result<()> {
        let before = later.get(&row.id).copied().unwrap_or_default();
        let failures = before.failures.saturating_add(1);
        let services = before.services + u32::from(passing == Passing::Service);
        let wait = wait(&row.id, failures);
        let reason = format!("{}; it is tried again in {}", error.message(), show_duration(wait));
        requeue(&self.store, &row.id, &reason).await?;
        // Attempts count what brought the process down.
        self.store.forget_attempt(&row.id).await?;
        later.insert(row.id.clone(), Later { failures, services, at: self.clock.elapsed() + wait });
        self.tell.say(Notice::TriedAgain { run: row.id.clone(), wait, why: error.report() });
        Ok(())
    }
}

/// Has a run wait again; it goes on where it was.
pub(crate) async fn requeue(store: &Store, run: &RunId, reason: &str) -> Result<()> {
    let waiting = What::StateEntered { state: RunState::Queued, reason: Some(reason.to_owned()) };
    store.append(run, waiting).await.map(drop)
}
