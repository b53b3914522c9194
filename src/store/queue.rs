//! The queue: runs that wait for a worker, and who has which.
//!
//! A run is taken in one statement, and with it comes a lease: the number of times the run was taken by then. Whoever
//! writes under an older one has lost the run to another and writes nothing. A run started by hand belongs to the
//! process that started it and is never taken from here.

use async_trait::async_trait;

use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::RunId;
use crate::owner::Owner;
use crate::store::run::RunRow;

/// The right to carry a run out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Which run.
    pub run: RunId,
    /// How often it was taken, this time included.
    pub fence: u64,
}

impl Lease {
    /// The code of what fails because the run was taken by another.
    pub const LOST: &str = "store::lease_lost";

    /// The error of one who writes without the right to.
    pub(in crate::store) fn lost(run: &RunId) -> Diagnostic {
        Diagnostic::new(Self::LOST, format!("run {run} is in other hands by now; nothing was recorded"))
            .help("another process took it over; `tidemill logs` shows what it does")
    }
}

/// A run that waits for a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Its id.
    pub id: RunId,
    /// Its workflow.
    pub workflow: String,
    /// Name of its model.
    pub model: String,
    /// Its place in the order of arrival.
    pub number: i64,
}

/// Runs that wait for a worker.
#[async_trait]
pub trait Queue: Send + Sync {
    /// Runs that may start, the oldest `each` of every workflow, oldest first. One that takes turns may when those of
    /// its schedule before it have ended, one that is tried again when its time has come.
    async fn waiting(&self, each: u32) -> Result<Vec<Waiting>>;

    /// How many runs wait for a worker, those that are tried again later included.
    async fn count_waiting(&self) -> Result<u64>;

    /// Takes a run that waits: it is `holder`'s from here on, and an attempt at it is counted. Nothing when somebody
    /// else was quicker, or its time has not come.
    async fn take(&self, run: &RunId, holder: &Owner) -> Result<Option<RunRow>>;

    /// Takes every run of the queue from whoever had it. Only for who holds the project's lock: there is one at a time,
    /// so whoever had a run is dead, or has lost it.
    async fn release_all(&self) -> Result<()>;

    /// Runs of the queue that have not ended, oldest first: after a start, what a dead process left behind.
    async fn unended(&self) -> Result<Vec<RunRow>>;

    /// Runs started by hand that have not ended, oldest first.
    async fn unended_by_hand(&self) -> Result<Vec<RunRow>>;

    /// Runs that somebody has, oldest first.
    async fn in_work(&self) -> Result<Vec<RunRow>>;

    /// Records that a run is to stop; whoever has it, or takes it next, ends it. Gives the run.
    ///
    /// Errors: `store::run_ended`.
    async fn cancel(&self, run: &RunId) -> Result<RunRow>;

    /// Runs that are to stop and have not ended.
    async fn to_cancel(&self) -> Result<Vec<RunRow>>;

    /// Ids of runs that begin with `start`.
    async fn ids_from(&self, start: &str) -> Result<Vec<RunId>>;
}
