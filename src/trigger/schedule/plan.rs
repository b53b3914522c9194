//! The instants of one schedule, in order.

use std::collections::VecDeque;

use croner::Cron;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};

use crate::trigger::schedule::cron;
use crate::trigger::schedule::jitter::jitter;
use crate::workflow::schedule::{Schedule, When, later};

/// A schedule that can be asked for its instants.
#[derive(Debug, Clone)]
pub struct Plan {
    id: String,
    schedule: Schedule,
    when: Compiled,
}

#[derive(Debug, Clone)]
enum Compiled {
    Cron(Box<Cron>),
    /// Milliseconds, above zero.
    Every(i64),
    /// In order; whether the clock on the wall showed it.
    At(Vec<Instant>),
}

/// An instant of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instant {
    /// When.
    pub at: Timestamp,
    /// What is odd about its local time.
    pub oddity: Option<Oddity>,
}

/// What clocks that change do to a local time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Oddity {
    /// The time does not exist on that day; this is right after the gap.
    Moved,
    /// The time comes twice; this is the first.
    First,
    /// The time comes twice; this is the second.
    Second,
}

impl Oddity {
    /// For people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Moved => "the time is left out that day; right after the gap",
            Self::First => "the time comes twice that day; the first",
            Self::Second => "the time comes twice that day; the second",
        }
    }
}

/// What has come between two instants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Passed {
    /// The newest of them, in order.
    pub(super) instants: VecDeque<Timestamp>,
    /// How many there were before those; at least, where there were too many to look at.
    pub(super) older: u64,
    /// The first one that has not come, when it comes to a run.
    pub(super) next: Option<Timestamp>,
}

impl Plan {
    /// More instants than this never make runs at once.
    const MOST: usize = 1_000;

    /// So many are looked at one after the other before a part of the time is passed over.
    const LOOKED_AT: u32 = 10_000;

    /// For the schedule that the store knows as `id`. The error says what is wrong with its pattern.
    pub fn new(id: &str, schedule: &Schedule) -> Result<Self, String> {
        let when = match &schedule.when {
            When::Cron(pattern) => Compiled::Cron(Box::new(cron::parse(pattern)?)),
            When::Every(period) => {
                Compiled::Every(i64::try_from(period.as_millis()).unwrap_or(i64::MAX).max(1))
            }
            When::At(times) => {
                let mut instants: Vec<Instant> =
                    times.iter().filter_map(|time| resolve(&schedule.timezone, *time)).collect();
                instants.sort_by_key(|instant| instant.at);
                instants.dedup_by_key(|instant| instant.at);
                Compiled::At(instants)
            }
        };
        Ok(Self { id: id.to_owned(), schedule: schedule.clone(), when })
    }

    /// What it is called in the store.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What was declared.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The first instant after `after`.
    pub fn next(&self, after: Timestamp) -> Option<Instant> {
        let zone = &self.schedule.timezone;
        match &self.when {
            Compiled::Cron(pattern) => cron::next(pattern, zone, after).map(|at| {
                let is_moved = !cron::fits(pattern, zone, at);
                Instant { at, oddity: if is_moved { Some(Oddity::Moved) } else { repeated(zone, at) } }
            }),
            Compiled::Every(period) => {
                let next = after.as_millisecond().div_euclid(*period).checked_add(1)?.checked_mul(*period)?;
                Some(Instant { at: Timestamp::from_millisecond(next).ok()?, oddity: None })
            }
            Compiled::At(instants) => instants.iter().find(|instant| instant.at > after).copied(),
        }
    }

    /// When the run of the instant `at` starts.
    pub fn start(&self, at: Timestamp) -> Timestamp {
        later(at, jitter(&self.id, at, self.schedule.jitter))
    }

    /// What has come after `after`, now that it is `now`. An instant whose start is put off holds up those behind it.
    pub(super) fn passed(&self, after: Timestamp, now: Timestamp) -> Passed {
        let mut passed = Passed { instants: VecDeque::new(), older: 0, next: None };
        let mut from = after;
        let mut looked_at = 0;
        while let Some(Instant { at, .. }) = self.next(from) {
            let start = self.start(at);
            if start > now {
                passed.next = Some(start);
                break;
            }
            passed.instants.push_back(at);
            if passed.instants.len() > Self::MOST {
                passed.instants.pop_front();
                passed.older += 1;
            }
            from = at;
            looked_at += 1;
            if looked_at == Self::LOOKED_AT {
                looked_at = 0;
                from += now.duration_since(at) / 2;
            }
        }
        passed
    }
}

/// The instant of a local time, by the rules for a cron at that time.
fn resolve(zone: &TimeZone, time: DateTime) -> Option<Instant> {
    let found = zone.to_ambiguous_timestamp(time);
    match found.offset() {
        AmbiguousOffset::Unambiguous { .. } => Some(Instant { at: found.unambiguous().ok()?, oddity: None }),
        AmbiguousOffset::Fold { .. } => {
            Some(Instant { at: found.earlier().ok()?, oddity: Some(Oddity::First) })
        }
        AmbiguousOffset::Gap { after, .. } => {
            // By the offset that is yet to come, it is an instant shortly before the clocks change.
            let before = after.to_timestamp(time).ok()?;
            let at = zone.following(before).next()?.timestamp();
            Some(Instant { at, oddity: Some(Oddity::Moved) })
        }
    }
}

/// Which one this is of a local time that comes twice.
fn repeated(zone: &TimeZone, at: Timestamp) -> Option<Oddity> {
    let found = zone.to_ambiguous_timestamp(zone.to_datetime(at));
    if !matches!(found.offset(), AmbiguousOffset::Fold { .. }) {
        return None;
    }
    let is_first = found.earlier().is_ok_and(|first| first == at);
    Some(if is_first { Oddity::First } else { Oddity::Second })
}

#[cfg(test)]
mod tests;
