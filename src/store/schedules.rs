//! Schedules: how far each has come, and which of their instants made runs.

use std::collections::BTreeSet;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::diagnostic::Result;
use crate::event::id::RunId;
use crate::store::run::NewRun;
use crate::workflow::schedule::{Fired, Schedule, Standing};

/// An instant that is to make a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Fire<'a> {
    /// The schedule's id.
    pub schedule: &'a str,
    /// What it declares.
    pub declared: &'a Schedule,
    /// The instant.
    pub at: Timestamp,
    /// Instants before it that made none.
    pub missed: u64,
    /// After this the run does not begin.
    pub start_by: Option<Timestamp>,
    /// The run.
    pub run: NewRun,
}

/// Whether an instant made a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// The one that was handed in.
    This,
    /// It had made one before.
    Before,
}

/// Schedules and their instants.
#[async_trait]
pub trait Schedules: Send + Sync {
    /// Makes these the schedules there are: id, workflow and declaration. One that is new, or has other instants than
    /// before, counts from `now`; what is known of others is forgotten, but for the runs they made.
    async fn know_schedules(&self, known: &[(&str, &str, &Schedule)], now: Timestamp) -> Result<()>;

    /// The schedules that are known, or that made runs, by id.
    async fn schedule_ids(&self) -> Result<Vec<String>>;

    /// How far a schedule has come; `None` when it is not known.
    async fn standing(&self, schedule: &str) -> Result<Option<Standing>>;

    /// Whether a run of the schedule has not ended.
    async fn is_busy(&self, schedule: &str) -> Result<bool>;

    /// The instants of a schedule after `after` and up to `until` that have made runs.
    async fn made(&self, schedule: &str, after: Timestamp, until: Timestamp) -> Result<BTreeSet<Timestamp>>;

    /// Queues the run of an instant and records that it made one, in one transaction. Where it has made one before,
    /// nothing is written.
    async fn fire(&self, fire: &Fire<'_>) -> Result<Made>;

    /// Records how far a schedule has come.
    async fn decide(&self, schedule: &str, standing: Standing) -> Result<()>;

    /// What made a run, or the one it does over, when it was a schedule.
    async fn fired(&self, run: &RunId) -> Result<Option<Fired>>;
}
