//! Runs by what and when they published.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::diagnostic::Result;
use crate::event::state::RunState;
use crate::store::published::Archive;
use crate::store::run::RunRow;
use crate::store::sqlite::Sqlite;
use crate::store::sqlite::column::micros;
use crate::store::sqlite::error::explain;
use crate::store::sqlite::run::decode;

#[async_trait]
impl Archive for Sqlite {
    async fn published(
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
