//! What became of a schedule's instants: the runs they made, and why others made none.

use async_trait::async_trait;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use crate::diagnostic::Result;
use crate::event::id::RunId;
use crate::event::state::RunState;
use crate::store::skips::{MadeRun, Skip, Skips};
use crate::store::sqlite::Sqlite;
use crate::store::sqlite::column::{instant, micros};
use crate::store::sqlite::error::{explain, unreadable};

#[async_trait]
impl Skips for Sqlite {
    async fn record_skip(&self, schedule: &str, skip: &Skip) -> Result<()> {
        let failed = |error| explain("record what became of a schedule's instants", error);
        let mut writer = self.0.writer.lock().await;
        let mut transaction = self.begin(&mut writer).await.map_err(failed)?;
        let (first, last) = (micros(skip.first), micros(skip.last));
        let row: Option<(i64, i64, String)> = sqlx::query_as(
            "SELECT id, last_at, reason FROM schedule_skips WHERE schedule = ?1 ORDER BY id DESC LIMIT 1",
        )
        .bind(schedule)
        .fetch_optional(&mut *transaction)
        .await
        .map_err(failed)?;
        let fired_between: bool = sqlx::query_scalar(
            "SELECT EXISTS (SELECT 1 FROM fires WHERE schedule = ?1 AND scheduled_at > ?2 AND scheduled_at < ?3)",
        )
        .bind(schedule)
        .bind(row.as_ref().map(|(_, last_at, _)| last_at))
        .bind(first)
        .fetch_one(&mut *transaction)
        .await
        .map_err(failed)?;
        let count = skip.count.cast_signed();
        match row {
            Some((_, before, reason)) if reason == skip.reason && before >= last => return Ok(()),
            Some((id, _, reason)) if reason == skip.reason && !fired_between => {
                sqlx::query("UPDATE schedule_skips SET last_at = ?2, count = count + ?3 WHERE id = ?1")
                    .bind(id)
                    .bind(last)
                    .bind(count)
                    .execute(&mut *transaction)
                    .await
                    .map_err(failed)?;
            }
            _ => {
                sqlx::query(
                    "INSERT INTO schedule_skips (schedule, first_at, last_at, count, reason)
                     VALUES (?1, ?2, ?3, ?4, ?5)",
                )
                .bind(schedule)
                .bind(first)
                .bind(last)
                .bind(count)
                .bind(&skip.reason)
                .execute(&mut *transaction)
                .await
                .map_err(failed)?;
            }
        }
        sqlx::query(
            "DELETE FROM schedule_skips WHERE schedule = ?1 AND id NOT IN
             (SELECT id FROM schedule_skips WHERE schedule = ?1 ORDER BY id DESC LIMIT ?2)",
        )
        .bind(schedule)
        .bind(Skip::KEPT)
        .execute(&mut *transaction)
        .await
        .map_err(failed)?;
        transaction.commit().await.map_err(failed)
    }

    async fn skips(&self, schedule: &str, limit: u32) -> Result<Vec<Skip>> {
        sqlx::query("SELECT * FROM schedule_skips WHERE schedule = ?1 ORDER BY id DESC LIMIT ?2")
            .bind(schedule)
            .bind(limit)
            .fetch_all(&self.0.readers)
            .await
            .map_err(|error| explain("read what became of a schedule's instants", error))?
            .iter()
            .map(skip)
            .collect()
    }

    async fn made_runs(&self, schedule: &str, limit: u32) -> Result<Vec<MadeRun>> {
        sqlx::query(
            "SELECT fires.scheduled_at, fires.run, runs.state FROM fires LEFT JOIN runs ON runs.id = fires.run
             WHERE fires.schedule = ?1 ORDER BY fires.scheduled_at DESC LIMIT ?2",
        )
        .bind(schedule)
        .bind(limit)
        .fetch_all(&self.0.readers)
        .await
        .map_err(|error| explain("look for runs of a schedule", error))?
        .iter()
        .map(made)
        .collect()
    }
}

fn skip(row: &SqliteRow) -> Result<Skip> {
    let failed = |error| explain("read what became of a schedule's instants", error);
    Ok(Skip {
        first: instant(row, "first_at")?,
        last: instant(row, "last_at")?,
        count: row.try_get::<i64, _>("count").map_err(failed)?.cast_unsigned(),
        reason: row.try_get("reason").map_err(failed)?,
    })
}

fn made(row: &SqliteRow) -> Result<MadeRun> {
    let failed = |error| explain("look for runs of a schedule", error);
    let state: Option<&str> = row.try_get("state").map_err(failed)?;
    Ok(MadeRun {
        at: instant(row, "scheduled_at")?,
        run: RunId::parse(row.try_get("run").map_err(failed)?).ok_or_else(|| unreadable("a run's id"))?,
        state: state
            .map(|state| RunState::parse(state).ok_or_else(|| unreadable("a run's state")))
            .transpose()?,
    })
}
