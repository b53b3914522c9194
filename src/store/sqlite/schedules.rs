//! Schedules: how far each has come, and which of their instants made runs.

use std::collections::BTreeSet;

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use sqlx::Row as _;

use crate::diagnostic::Result;
use crate::event::id::RunId;
use crate::store::schedules::{Fire, Made, Schedules};
use crate::store::sqlite::Sqlite;
use crate::store::sqlite::column::{instant, micros, moment};
use crate::store::sqlite::error::{explain, unreadable};
use crate::store::sqlite::log::insert;
use crate::workflow::schedule::{Fired, Overlap, Schedule, Standing};

#[async_trait]
impl Schedules for Sqlite {
    async fn know_schedules(&self, known: &[(&str, &str, &Schedule)], now: Timestamp) -> Result<()> {
        let failed = |error| explain("record the schedules", error);
        let mut writer = self.0.writer.lock().await;
        let mut transaction = self.begin(&mut writer).await.map_err(failed)?;
        let there: Vec<String> = sqlx::query_scalar("SELECT id FROM schedules")
            .fetch_all(&mut *transaction)
            .await
            .map_err(failed)?;
        for gone in there.iter().filter(|id| known.iter().all(|(known, ..)| known != id)) {
            for statement in
                ["DELETE FROM schedules WHERE id = ?1", "DELETE FROM schedule_skips WHERE schedule = ?1"]
            {
                sqlx::query(statement).bind(gone).execute(&mut *transaction).await.map_err(failed)?;
            }
        }
        for (id, workflow, schedule) in known {
            sqlx::query(
                "INSERT INTO schedules (id, workflow, plan, decided) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (id) DO UPDATE
                 SET plan = excluded.plan, decided = excluded.decided, held = NULL, missed = 0
                 WHERE plan <> excluded.plan",
            )
            .bind(id)
            .bind(workflow)
            .bind(schedule.describe())
            .bind(micros(now))
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
        }
        transaction.commit().await.map_err(failed)
    }

    async fn schedule_ids(&self) -> Result<Vec<String>> {
        sqlx::query_scalar("SELECT id FROM schedules UNION SELECT schedule FROM fires ORDER BY 1")
            .fetch_all(&self.0.readers)
            .await
            .map_err(|error| explain("list the schedules", error))
    }

    async fn standing(&self, schedule: &str) -> Result<Option<Standing>> {
        let row = sqlx::query("SELECT * FROM schedules WHERE id = ?1")
            .bind(schedule)
            .fetch_optional(&self.0.readers)
            .await
            .map_err(|error| explain("read a schedule", error))?;
        row.map(|row| {
            Ok(Standing {
                decided: instant(&row, "decided")?,
                held: moment(&row, "held")?,
                missed: count(&row)?,
            })
        })
        .transpose()
    }

    async fn is_busy(&self, schedule: &str) -> Result<bool> {
        sqlx::query_scalar(
            // A cross join is taken in this order: few runs have not ended, and a schedule may have made very many.
            "SELECT EXISTS (SELECT 1 FROM runs CROSS JOIN fires ON fires.run = runs.id
             WHERE runs.ended_at IS NULL AND fires.schedule = ?1)",
        )
        .bind(schedule)
        .fetch_one(&self.0.readers)
        .await
        .map_err(|error| explain("look for runs of a schedule", error))
    }

    async fn made(&self, schedule: &str, after: Timestamp, until: Timestamp) -> Result<BTreeSet<Timestamp>> {
        sqlx::query(
            "SELECT scheduled_at FROM fires WHERE schedule = ?1 AND scheduled_at > ?2 AND scheduled_at <= ?3",
        )
        .bind(schedule)
        .bind(micros(after))
        .bind(micros(until))
        .fetch_all(&self.0.readers)
        .await
        .map_err(|error| explain("look for runs of a schedule", error))?
        .iter()
        .map(|row| instant(row, "scheduled_at"))
        .collect()
    }

    async fn fire(&self, fire: &Fire<'_>) -> Result<Made> {
        let failed = |error| explain(&format!("queue a run of schedule {}", fire.schedule), error);
        let mut writer = self.0.writer.lock().await;
        let mut transaction = self.begin(&mut writer).await.map_err(failed)?;
        let is_made: bool = sqlx::query_scalar(
            "SELECT EXISTS (SELECT 1 FROM fires WHERE schedule = ?1 AND scheduled_at = ?2)",
        )
        .bind(fire.schedule)
        .bind(micros(fire.at))
        .fetch_one(&mut *transaction)
        .await
        .map_err(failed)?;
        if is_made {
            return Ok(Made::Before);
        }
        let events = insert(&mut transaction, &fire.run).await?;
        sqlx::query(
            "INSERT INTO fires (schedule, scheduled_at, run, previous, missed, timezone, start_by, takes_turns)
             VALUES (?1, ?2, ?3,
                 (SELECT max(scheduled_at) FROM fires WHERE schedule = ?1 AND scheduled_at < ?2), ?4, ?5, ?6, ?7)",
        )
        .bind(fire.schedule)
        .bind(micros(fire.at))
        .bind(fire.run.id.as_str())
        .bind(fire.missed.cast_signed())
        .bind(fire.declared.zone())
        .bind(fire.start_by.map(micros))
        .bind(fire.declared.overlap == Overlap::Queue)
        .execute(&mut *transaction)
        .await
        .map_err(failed)?;
        sqlx::query("UPDATE schedules SET decided = ?2, held = NULL, missed = 0 WHERE id = ?1")
            .bind(fire.schedule)
            .bind(micros(fire.at))
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
        transaction.commit().await.map_err(failed)?;
        self.tell(events);
        Ok(Made::This)
    }

    async fn decide(&self, schedule: &str, standing: Standing) -> Result<()> {
        let writer = &mut *self.0.writer.lock().await;
        sqlx::query("UPDATE schedules SET decided = ?2, held = ?3, missed = ?4 WHERE id = ?1")
            .bind(schedule)
            .bind(micros(standing.decided))
            .bind(standing.held.map(micros))
            .bind(standing.missed.cast_signed())
            .execute(writer)
            .await
            .map(drop)
            .map_err(|error| explain("record how far a schedule has come", error))
    }

    async fn fired(&self, run: &RunId) -> Result<Option<Fired>> {
        let failed = |error| explain("read what started a run", error);
        let row = sqlx::query(
            "WITH RECURSIVE over (id) AS (
                 SELECT ?1 UNION SELECT retry_of FROM runs CROSS JOIN over ON runs.id = over.id
             ) SELECT * FROM fires WHERE run IN (SELECT id FROM over)",
        )
        .bind(run.as_str())
        .fetch_optional(&self.0.readers)
        .await
        .map_err(failed)?;
        row.map(|row| {
            let zone: &str = row.try_get("timezone").map_err(failed)?;
            Ok(Fired {
                at: instant(&row, "scheduled_at")?,
                previous: moment(&row, "previous")?,
                missed: count(&row)?,
                timezone: TimeZone::get(zone).map_err(|error| unreadable("a time zone").cause(error))?,
                start_by: moment(&row, "start_by")?,
            })
        })
        .transpose()
    }
}

fn count(row: &sqlx::sqlite::SqliteRow) -> Result<u64> {
    let missed: i64 = row.try_get("missed").map_err(|error| explain("read a schedule", error))?;
    Ok(missed.cast_unsigned())
}
