//! The event log: append first, act second.

use async_trait::async_trait;
use tokio::sync::broadcast;

use crate::diagnostic::Result;
use crate::event::id::RunId;
use crate::event::{Event, What};
use crate::store::queue::Lease;
use crate::store::run::NewRun;

/// Runs and their events.
#[async_trait]
pub trait Log: Send + Sync {
    /// Queues a run: its row and its first two events stand in one transaction.
    async fn queue_run(&self, run: NewRun) -> Result<()>;

    /// Appends what happened to a run, whoever has it; the run's row changes with it, in one transaction.
    ///
    /// Errors: `store::unknown_run`, `store::run_ended` (nothing follows a run's last event).
    async fn append(&self, run: &RunId, what: What) -> Result<Event>;

    /// The same for who carries the run out.
    ///
    /// Errors: `store::lease_lost` as well, when another has taken it since.
    async fn append_under(&self, lease: &Lease, what: What) -> Result<Event>;

    /// The same for who lets go of the run in good order: no process went down with it, so this attempt does not count.
    async fn give_back(&self, lease: &Lease, what: What) -> Result<Event>;

    /// The events of a run with a place above `after`, in order, `limit` at most.
    async fn events(&self, run: &RunId, after: u64, limit: u32) -> Result<Vec<Event>>;

    /// Every event of a run, in order.
    async fn all_events(&self, run: &RunId) -> Result<Vec<Event>>;

    /// Events that this process appends from now on. A reader that lags too far is told so and reads the log.
    fn follow(&self) -> broadcast::Receiver<Event>;
}
