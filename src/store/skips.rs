//! What became of a schedule's instants: the runs they made, and why others made none.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::diagnostic::Result;
use crate::event::id::RunId;
use crate::event::state::RunState;

/// Instants in a row that made no run, for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skip {
    /// The first of them.
    pub first: Timestamp,
    /// The last of them.
    pub last: Timestamp,
    /// How many; at least, where there were very many.
    pub count: u64,
    /// Why, for people.
    pub reason: String,
}

/// An instant that made a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeRun {
    /// The instant.
    pub at: Timestamp,
    /// Its run.
    pub run: RunId,
    /// Where that stands; nothing when it was forgotten.
    pub state: Option<RunState>,
}

impl Skip {
    /// So many rows of a schedule are kept, the newest.
    pub const KEPT: u32 = 100;
}

/// Instants that made no run.
#[async_trait]
pub trait Skips: Send + Sync {
    /// Records instants that made no run. What follows on the last ones for the same reason is one row with them, and
    /// what was recorded before is not recorded again.
    async fn record_skip(&self, schedule: &str, skip: &Skip) -> Result<()>;

    /// The last instants of a schedule that made no run, newest first.
    async fn skips(&self, schedule: &str, limit: u32) -> Result<Vec<Skip>>;

    /// The last instants of a schedule that made runs, newest first.
    async fn made_runs(&self, schedule: &str, limit: u32) -> Result<Vec<MadeRun>>;
}
