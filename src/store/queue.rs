//! The queue: runs that wait for a worker.
//!
//! A run started by hand belongs to the process that started it and is never taken from here.

use crate::diagnostic::Result;
use crate::event::id::RunId;
use crate::event::state::RunState;
use crate::event::trigger::Trigger;
use crate::store::Store;
use crate::store::error::explain;
use crate::store::run::{RunRow, decode};

impl Store {
    /// Runs that wait and may start, oldest first, `limit` at most. One that takes turns may when those of its schedule
    /// before it have ended.
    pub async fn waiting(&self, limit: u32) -> Result<Vec<RunRow>> {
        sqlx::query(
            "SELECT * FROM runs WHERE state = ?1 AND trigger <> ?2 AND NOT EXISTS (
                 SELECT 1 FROM runs AS before CROSS JOIN fires ON fires.run = before.id
                 WHERE before.ended_at IS NULL AND before.number < runs.number
                 AND fires.schedule = (SELECT schedule FROM fires WHERE run = runs.id AND takes_turns)
             ) ORDER BY number LIMIT ?3",
        )
        .bind(RunState::Queued.as_str())
        .bind(Trigger::Manual.as_str())
        .bind(limit)
        .fetch_all(&self.0.readers)
        .await
        .map_err(|error| explain("read the queue", error))?
        .iter()
        .map(decode)
        .collect()
    }

    /// Runs of the queue that have not ended, oldest first: after a start, what a dead process left behind.
    pub async fn unended(&self) -> Result<Vec<RunRow>> {
        sqlx::query("SELECT * FROM runs WHERE ended_at IS NULL AND trigger <> ?1 ORDER BY number")
            .bind(Trigger::Manual.as_str())
            .fetch_all(&self.0.readers)
            .await
            .map_err(|error| explain("read the queue", error))?
            .iter()
            .map(decode)
            .collect()
    }

    /// Counts one more attempt at a run, before it is made: a run that brings the process down counts as well.
    pub async fn count_attempt(&self, run: &RunId) -> Result<()> {
        self.set_attempts(run, "attempts + 1").await
    }

    /// Takes the last attempt back: it ended in good order, and no process went down with it.
    pub async fn forget_attempt(&self, run: &RunId) -> Result<()> {
        self.set_attempts(run, "max(attempts - 1, 0)").await
    }

    async fn set_attempts(&self, run: &RunId, count: &'static str) -> Result<()> {
        let writer = &mut *self.0.writer.lock().await;
        sqlx::query(sqlx::AssertSqlSafe(format!("UPDATE runs SET attempts = {count} WHERE id = ?1")))
            .bind(run.as_str())
            .execute(writer)
            .await
            .map(drop)
            .map_err(|error| explain("count an attempt", error))
    }

    /// Ids of runs that begin with `start`.
    pub async fn ids_from(&self, start: &str) -> Result<Vec<RunId>> {
        let ids: Vec<String> =
            sqlx::query_scalar("SELECT id FROM runs WHERE id >= ?1 AND substr(id, 1, length(?1)) = ?1")
                .bind(start)
                .fetch_all(&self.0.readers)
                .await
                .map_err(|error| explain("look for runs", error))?;
        Ok(ids.iter().filter_map(|id| RunId::parse(id)).collect())
    }
}
