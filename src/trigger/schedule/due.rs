//! What becomes of instants that have come: pure, so that it can be asked in a test about every clock.

use std::time::Duration;

use jiff::Timestamp;

use crate::trigger::schedule::plan::Plan;
use crate::workflow::schedule::{Missed, Overlap, Schedule, Standing, later};

/// An instant noticed this much after its start is on time. Later, it was missed.
const ON_TIME: Duration = Duration::from_secs(60);

/// Whether a run of the schedule has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Busy {
    /// One has not.
    Yes,
    /// All have, or there was none.
    No,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// Runs to be queued, in order.
    pub firings: Vec<Firing>,
    /// How far the schedule has come when they are.
    pub standing: Standing,
    /// When something comes next, as far as is known.
    pub next: Option<Timestamp>,
}

/// An instant that makes a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Firing {
    /// Which.
    pub at: Timestamp,
    /// Instants before it that made none.
    pub missed: u64,
}

/// What becomes of the instants that have come by `now`.
///
/// Where the clock was set back, it counts from there again: an instant that made a run is known by the store and makes
/// no other.
pub fn due(plan: &Plan, standing: Standing, now: Timestamp, busy: Busy) -> Due {
    let mut round = Round {
        schedule: plan.schedule(),
        now,
        standing: Standing { decided: standing.decided.min(now), ..standing },
        busy,
        firings: Vec::new(),
    };
    let passed = plan.passed(round.standing.decided, now);
    round.let_go();
    round.standing.missed = round.standing.missed.saturating_add(passed.older);
    let last = passed.instants.back().copied();
    for at in passed.instants {
        round.standing.decided = at;
        let is_late = now > later(plan.start(at), ON_TIME);
        if round.is_wanted(at, is_late, Some(at) == last) {
            round.take(at);
        } else {
            round.miss();
        }
    }
    Due { firings: round.firings, standing: round.standing, next: passed.next }
}

struct Round<'a> {
    schedule: &'a Schedule,
    now: Timestamp,
    standing: Standing,
    busy: Busy,
    firings: Vec<Firing>,
}

impl Round<'_> {
    /// Whether the rules want a run for the instant, whatever else runs.
    fn is_wanted(&self, at: Timestamp, is_late: bool, is_last: bool) -> bool {
        if !self.is_in_time(at) {
            return false;
        }
        let is_recent = self.schedule.catchup_window.is_none_or(|window| later(at, window) >= self.now);
        !is_late
            || is_recent
                && match self.schedule.missed {
                    Missed::Skip => false,
                    // One that is on time stands for the missed ones before it as well.
                    Missed::Latest => is_last,
                    Missed::All => true,
                }
    }

    fn is_in_time(&self, at: Timestamp) -> bool {
        self.schedule.start_by(at).is_none_or(|last| last >= self.now)
    }

    /// The run that an instant waited for has ended.
    fn let_go(&mut self) {
        if self.busy == Busy::Yes {
            return;
        }
        match self.standing.held.take() {
            Some(at) if self.is_in_time(at) => self.fire(at),
            Some(_) => self.miss(),
            None => {}
        }
    }

    fn take(&mut self, at: Timestamp) {
        match (self.busy, self.schedule.overlap) {
            (Busy::No, _) | (_, Overlap::Queue | Overlap::Allow) => self.fire(at),
            (Busy::Yes, Overlap::Skip) => self.miss(),
            (Busy::Yes, Overlap::Latest) => {
                if self.standing.held.replace(at).is_some() {
                    self.miss();
                }
            }
        }
    }

    fn fire(&mut self, at: Timestamp) {
        self.firings.push(Firing { at, missed: self.standing.missed });
        self.standing.missed = 0;
        self.busy = Busy::Yes;
    }

    fn miss(&mut self) {
        self.standing.missed = self.standing.missed.saturating_add(1);
    }
}

#[cfg(test)]
mod tests;
