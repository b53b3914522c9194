//! Runs by what and when they published.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::diagnostic::Result;
use crate::store::run::RunRow;

/// What runs published.
#[async_trait]
pub trait Archive: Send + Sync {
    /// The runs of a workflow that published, oldest first: those that ended at `since` or later, and were queued
    /// before `until`.
    async fn published(
        &self,
        workflow: &str,
        since: Option<Timestamp>,
        until: Option<Timestamp>,
    ) -> Result<Vec<RunRow>>;
}
