//! What became of instants that have come.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::local;
use crate::diagnostic::Result;
use crate::event::id::RunId;
use crate::event::state::RunState;
use crate::store::{MadeRun, Skip, Store};

/// So many are told.
const SHOWN: u32 = 10;

/// An instant, or several that made no run for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Past {
    /// The first of them.
    pub(super) first: Timestamp,
    /// What became of it.
    pub(super) became: Became,
}

/// What became of an instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Became {
    /// A run, and where that stands; nothing when it was forgotten.
    Run { run: RunId, state: Option<RunState> },
    /// No run.
    Skipped { last: Timestamp, count: u64, reason: String },
}

/// The last ones, oldest first.
pub(super) async fn gather(store: &Store, schedule: &str) -> Result<Vec<Past>> {
    let made = store.made_runs(schedule, SHOWN).await?.into_iter();
    let made = made.map(|MadeRun { at, run, state }| Past { first: at, became: Became::Run { run, state } });
    let skips = store.skips(schedule, SHOWN).await?.into_iter();
    let skips = skips.map(|Skip { first, last, count, reason }| Past {
        first,
        became: Became::Skipped { last, count, reason },
    });
    let mut past: Vec<Past> = made.chain(skips).collect();
    past.sort_by_key(|past| past.first);
    let surplus = past.len().saturating_sub(usize::try_from(SHOWN).unwrap_or(usize::MAX));
    Ok(past.split_off(surplus))
}

impl Past {
    /// For people.
    pub(super) fn text(&self, zone: &TimeZone) -> String {
        let first = local(self.first, zone);
        match &self.became {
            Became::Run { run, state: Some(state) } => format!("{first}: run {run}, {state}"),
            Became::Run { run, state: None } => format!("{first}: run {run}, which was forgotten since"),
            Became::Skipped { count: 1, reason, .. } => format!("{first}: no run, {reason}"),
            Became::Skipped { last, count, reason } => {
                format!("{first}: no run, {reason}; {count} instants up to {}", local(*last, zone))
            }
        }
    }

    /// For programs.
    pub(super) fn as_json(&self) -> Value {
        let at = self.first.to_string();
        match &self.became {
            Became::Run { run, state } => {
                json!({ "at": at, "run": run.as_str(), "state": state.map(RunState::as_str) })
            }
            Became::Skipped { last, count, reason } => {
                json!({ "at": at, "last": last.to_string(), "count": count, "reason": reason, "run": null })
            }
        }
    }
}
