//! What becomes of instants that have come: pure, so that it can be asked in a test about every clock.

use std::collections::BTreeSet;
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
    /// What makes no run, in order; instants in a row with one reason are one.
    pub skipped: Vec<Skipped>,
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

/// Instants that make no run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skipped {
    /// How many; at least, where there were very many.
    pub count: u64,
    /// The first of them that is known.
    pub first: Timestamp,
    /// The last of them.
    pub last: Timestamp,
    /// Why they make none.
    pub why: Why,
}

/// Why an instant makes no run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It was missed, and is not made up for.
    Missed,
    /// The start deadline has passed.
    TooLate,
    /// A run of the schedule works.
    Busy,
    /// It waited for a run to end, and a newer one does so now.
    Replaced,
}

impl Why {
    /// For people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Missed => "nobody watched at the time",
            Self::TooLate => "its start deadline has passed",
            Self::Busy => "the run before still works",
            Self::Replaced => "a newer one waits for the run before to end",
        }
    }
}

/// What becomes of the instants that have come by `now`. Those of `made` have made their runs: where the clock was set
/// back, it counts from there again, and they come a second time.
pub fn due(plan: &Plan, standing: Standing, now: Timestamp, busy: Busy, made: &BTreeSet<Timestamp>) -> Due {
    let mut round = Round {
        schedule: plan.schedule(),
        now,
        standing: Standing { decided: standing.decided.min(now), ..standing },
        busy,
        firings: Vec::new(),
        skipped: Vec::new(),
    };
    let passed = plan.passed(round.standing.decided, now);
    round.let_go();
    let last = passed.instants.back().copied();
    if let Some(first) = passed.instants.front() {
        round.skip(*first, passed.older, Why::Missed);
    }
    for at in passed.instants {
        round.standing.decided = at;
        if made.contains(&at) {
            continue;
        }
        let is_late = now > later(plan.start(at), ON_TIME);
        match round.refusal(at, is_late, Some(at) == last) {
            Some(why) => round.skip(at, 1, why),
            None => round.take(at),
        }
    }
    Due { firings: round.firings, skipped: round.skipped, standing: round.standing, next: passed.next }
}

struct Round<'a> {
    schedule: &'a Schedule,
    now: Timestamp,
    standing: Standing,
    busy: Busy,
    firings: Vec<Firing>,
    skipped: Vec<Skipped>,
}

impl Round<'_> {
    /// Why the rules want no run for the instant, whatever else runs.
    fn refusal(&self, at: Timestamp, is_late: bool, is_last: bool) -> Option<Why> {
        if !self.is_in_time(at) {
            return Some(Why::TooLate);
        }
        let is_recent = self.schedule.catchup_window.is_none_or(|window| later(at, window) >= self.now);
        let is_made_up_for = match self.schedule.missed {
            Missed::Skip => false,
            // One that is on time stands for the missed ones before it as well.
            Missed::Latest => is_last,
            Missed::All => true,
        };
        (is_late && !(is_recent && is_made_up_for)).then_some(Why::Missed)
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
            Some(at) => self.skip(at, 1, Why::TooLate),
            None => {}
        }
    }

    fn take(&mut self, at: Timestamp) {
        match (self.busy, self.schedule.overlap) {
            (Busy::No, _) | (_, Overlap::Queue | Overlap::Allow) => self.fire(at),
            (Busy::Yes, Overlap::Skip) => self.skip(at, 1, Why::Busy),
            (Busy::Yes, Overlap::Latest) => {
                if let Some(before) = self.standing.held.replace(at) {
                    self.skip(before, 1, Why::Replaced);
                }
            }
        }
    }

    fn fire(&mut self, at: Timestamp) {
        self.firings.push(Firing { at, missed: self.standing.missed });
        self.standing.missed = 0;
        self.busy = Busy::Yes;
    }

    fn skip(&mut self, at: Timestamp, count: u64, why: Why) {
        if count == 0 {
            return;
        }
        self.standing.missed = self.standing.missed.saturating_add(count);
        match self.skipped.last_mut() {
            Some(before) if before.why == why => {
                before.count = before.count.saturating_add(count);
                before.last = at;
            }
            _ => self.skipped.push(Skipped { count, first: at, last: at, why }),
        }
    }
}

#[cfg(test)]
mod tests;
