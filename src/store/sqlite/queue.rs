//! The queue: runs that wait for a worker, and who has which.

use async_trait::async_trait;
use sqlx::Row as _;

use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::RunId;
use crate::owner::Owner;
use crate::store::queue::{Queue, Waiting};
use crate::store::run::RunRow;
use crate::store::sqlite::Sqlite;
use crate::store::sqlite::column::micros;
use crate::store::sqlite::error::{explain, unreadable};
use crate::store::sqlite::run::decode;

#[async_trait]
impl Queue for Sqlite {
    async fn waiting(&self, each: u32) -> Result<Vec<Waiting>> {
        let failed = |error| explain("read the queue", error);
        // From one workflow to the next by the index: however many runs wait, few rows are read.
        sqlx::query(
            "WITH RECURSIVE flows (workflow) AS (
                 SELECT min(workflow) FROM runs INDEXED BY runs_waiting WHERE state = 'queued' AND holder IS NULL AND by_hand = 0
                 UNION ALL
                 SELECT (SELECT min(runs.workflow) FROM runs INDEXED BY runs_waiting WHERE state = 'queued' AND holder IS NULL
                     AND by_hand = 0 AND runs.workflow > flows.workflow)
                 FROM flows WHERE flows.workflow IS NOT NULL
             )
             SELECT id, runs.workflow, model, number FROM flows CROSS JOIN runs ON runs.number IN (
                 SELECT number FROM runs AS ready INDEXED BY runs_waiting
                 WHERE ready.state = 'queued' AND ready.holder IS NULL AND ready.by_hand = 0
                 AND ready.workflow = flows.workflow AND (ready.run_at IS NULL OR ready.run_at <= ?1)
                 AND (NOT EXISTS (SELECT 1 FROM fires WHERE run = ready.id AND takes_turns) OR NOT EXISTS (
                     SELECT 1 FROM runs AS before CROSS JOIN fires ON fires.run = before.id
                     WHERE before.ended_at IS NULL AND before.number < ready.number
                     AND fires.schedule = (SELECT schedule FROM fires WHERE run = ready.id AND takes_turns)
                 )) ORDER BY number LIMIT ?2
             ) ORDER BY number",
        )
        .bind(micros(self.0.clock.now()))
        .bind(each)
        .fetch_all(&self.0.readers)
        .await
        .map_err(failed)?
        .iter()
        .map(|row| {
            let id: &str = row.try_get("id").map_err(failed)?;
            Ok(Waiting {
                id: RunId::parse(id).ok_or_else(|| unreadable("a run's id"))?,
                workflow: row.try_get("workflow").map_err(failed)?,
                model: row.try_get("model").map_err(failed)?,
                number: row.try_get("number").map_err(failed)?,
            })
        })
        .collect()
    }

    async fn count_waiting(&self) -> Result<u64> {
        let sql = "SELECT count(*) FROM runs WHERE state = 'queued' AND holder IS NULL AND by_hand = 0";
        let count: i64 = sqlx::query_scalar(sql)
            .fetch_one(&self.0.readers)
            .await
            .map_err(|error| explain("count the runs that wait", error))?;
        Ok(count.unsigned_abs())
    }

    async fn take(&self, run: &RunId, holder: &Owner) -> Result<Option<RunRow>> {
        let writer = &mut *self.0.writer.lock().await;
        // What is counted is what brings the process down: who lets go in good order takes it back, see `give_back`.
        sqlx::query(
            "UPDATE runs SET fence = fence + 1, holder = ?2, attempts = attempts + 1
             WHERE id = ?1 AND state = 'queued' AND holder IS NULL AND by_hand = 0
             AND (run_at IS NULL OR run_at <= ?3 OR cancel_at IS NOT NULL) RETURNING *",
        )
        .bind(run.as_str())
        .bind(holder.to_string())
        .bind(micros(self.0.clock.now()))
        .fetch_optional(writer)
        .await
        .map_err(|error| explain("take a run", error))?
        .map(|row| decode(&row))
        .transpose()
    }

    async fn release_all(&self) -> Result<()> {
        let writer = &mut *self.0.writer.lock().await;
        sqlx::query(
            "UPDATE runs SET fence = fence + 1, holder = NULL
             WHERE ended_at IS NULL AND holder IS NOT NULL AND by_hand = 0",
        )
        .execute(writer)
        .await
        .map(drop)
        .map_err(|error| explain("take runs from dead processes", error))
    }

    async fn unended(&self) -> Result<Vec<RunRow>> {
        self.list(
            "SELECT * FROM runs WHERE ended_at IS NULL AND by_hand = 0 ORDER BY number",
            "read the queue",
        )
        .await
    }

    async fn unended_by_hand(&self) -> Result<Vec<RunRow>> {
        self.list(
            "SELECT * FROM runs WHERE ended_at IS NULL AND by_hand = 1 ORDER BY number",
            "look for runs started by hand",
        )
        .await
    }

    async fn in_work(&self) -> Result<Vec<RunRow>> {
        self.list(
            "SELECT * FROM runs WHERE ended_at IS NULL AND holder IS NOT NULL ORDER BY number",
            "read the queue",
        )
        .await
    }

    async fn cancel(&self, run: &RunId) -> Result<RunRow> {
        let failed = |error| explain("cancel a run", error);
        // What was to wait for another try need not wait to be ended.
        let asked = sqlx::query(
            "UPDATE runs SET cancel_at = coalesce(cancel_at, ?2), run_at = NULL
             WHERE id = ?1 AND ended_at IS NULL RETURNING *",
        )
        .bind(run.as_str())
        .bind(micros(self.0.clock.now()))
        .fetch_optional(&mut *self.0.writer.lock().await)
        .await
        .map_err(failed)?;
        match asked {
            Some(row) => decode(&row),
            None => Err(Diagnostic::new("store::run_ended", format!("run {run} has ended already"))
                .help("`tidemill show` says how")),
        }
    }

    async fn to_cancel(&self) -> Result<Vec<RunRow>> {
        self.list(
            "SELECT * FROM runs WHERE cancel_at IS NOT NULL AND ended_at IS NULL ORDER BY number",
            "look for runs that are to stop",
        )
        .await
    }

    async fn ids_from(&self, start: &str) -> Result<Vec<RunId>> {
        let ids: Vec<String> =
            sqlx::query_scalar("SELECT id FROM runs WHERE id >= ?1 AND substr(id, 1, length(?1)) = ?1")
                .bind(start)
                .fetch_all(&self.0.readers)
                .await
                .map_err(|error| explain("look for runs", error))?;
        Ok(ids.iter().filter_map(|id| RunId::parse(id)).collect())
    }
}

impl Sqlite {
    /// The runs a query without parameters finds.
    async fn list(&self, query: &'static str, act: &str) -> Result<Vec<RunRow>> {
        sqlx::query(query)
            .fetch_all(&self.0.readers)
            .await
            .map_err(|error| explain(act, error))?
            .iter()
            .map(decode)
            .collect()
    }
}
