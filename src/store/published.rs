//! Runs by what and when they published.

use jiff::Timestamp;

use crate::diagnostic::Result;
use crate::event::state::RunState;
use crate::store::Store;
use crate::store::column::micros;
use crate::store::error::explain;
use crate::store::run::{RunRow, decode};

impl Store {
    /// The runs of a workflow that published, oldest first: those that ended at `since` or later, and were queued
    /// before `until`.
    pub async fn published(
        &self,
        workflow: &str,
        since: Option<Timestamp>,
        until: Option<Timestamp>,
    ) -> Result<Vec<RunRow>> {
        sqlx::query(
            "SELECT * FROM runs WHERE workflow = ?1 AND state = ?2 AND published IS NOT NULL
             AND (?3 IS NULL OR ended_at >= ?3) AND (?4 IS NULL OR queued_at < ?4) ORDER BY number",
        )
        .bind(workflow)
        .bind(RunState::Succeeded.as_str())
        .bind(since.map(micros))
        .bind(until.map(micros))
        .fetch_all(&self.0.readers)
        .await
        .map_err(|error| explain("look for what was published", error))?
        .iter()
        .map(decode)
        .collect()
    }
}
