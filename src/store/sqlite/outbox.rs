//! Messages about runs on their way to others: each stands from the moment it tells of until it arrived or was given up.

use async_trait::async_trait;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row as _, SqliteConnection};

use crate::diagnostic::{Diagnostic, Result};
use crate::event::Event;
use crate::event::id::{Digest, RunId};
use crate::store::outbox::{Attempted, Delivery, DeliveryState, Outbox};
use crate::store::sqlite::Sqlite;
use crate::store::sqlite::column::{instant, json, micros, to_json};
use crate::store::sqlite::error::{explain, unreadable};
use crate::workflow::notify::{Moment, Notify};

/// A message waits behind those of the same run to the same target.
const HEADS: &str = "SELECT * FROM deliveries AS own WHERE state = 'waiting' AND due <= ?1 AND NOT EXISTS
    (SELECT 1 FROM deliveries AS other WHERE other.run = own.run AND other.place = own.place
     AND other.seq < own.seq AND other.state = 'waiting')";

#[async_trait]
impl Outbox for Sqlite {
    async fn know_targets(&self, script: &Digest, targets: &[Notify]) -> Result<()> {
        let failed = |error| explain("record who is told of runs", error);
        let writer = &mut *self.0.writer.lock().await;
        for (place, target) in (1_i64..).zip(targets) {
            sqlx::query("INSERT OR IGNORE INTO targets (script, place, target) VALUES (?1, ?2, ?3)")
                .bind(script.as_str())
                .bind(place)
                .bind(to_json(target)?)
                .execute(&mut *writer)
                .await
                .map_err(failed)?;
        }
        Ok(())
    }

    async fn next_deliveries(&self, limit: u32) -> Result<Vec<Delivery>> {
        sqlx::query(sqlx::AssertSqlSafe(format!("{HEADS} ORDER BY due, id LIMIT ?2")))
            .bind(micros(self.0.clock.now()))
            .bind(limit)
            .fetch_all(&self.0.readers)
            .await
            .map_err(|error| explain("look for messages", error))?
            .iter()
            .map(decode)
            .collect()
    }

    async fn attempted(&self, delivery: &Delivery, came: &Attempted) -> Result<()> {
        let failed = |error| explain("record what became of a message", error);
        let now = micros(self.0.clock.now());
        let mut writer = self.0.writer.lock().await;
        let mut transaction = self.begin(&mut writer).await.map_err(failed)?;
        sqlx::query(
            "UPDATE deliveries SET state = ?2, due = ?3, attempts = attempts + 1, changed_at = ?4, status = ?5,
             answer = ?6, error = ?7 WHERE id = ?1",
        )
        .bind(delivery.id)
        .bind(came.state.as_str())
        .bind(micros(came.due))
        .bind(now)
        .bind(came.status)
        .bind(&came.answer)
        .bind(&came.error)
        .execute(&mut *transaction)
        .await
        .map_err(failed)?;
        // Those behind it need not be looked at before.
        sqlx::query(
            "UPDATE deliveries SET due = max(due, ?4) WHERE run = ?1 AND place = ?2 AND seq > ?3 AND state = 'waiting'
             AND ?5 = 'waiting'",
        )
        .bind(delivery.run.as_str())
        .bind(delivery.place)
        .bind(i64::try_from(delivery.seq).unwrap_or(i64::MAX))
        .bind(micros(came.due))
        .bind(came.state.as_str())
        .execute(&mut *transaction)
        .await
        .map_err(failed)?;
        if came.state == DeliveryState::Gone {
            let url = to_json(&delivery.target.url)?;
            for statement in [
                "INSERT OR REPLACE INTO gone_targets (workflow, url, at) VALUES (?1, ?2, ?3)",
                "UPDATE deliveries SET state = 'gone', changed_at = ?3
                 WHERE workflow = ?1 AND url = ?2 AND state = 'waiting'",
            ] {
                sqlx::query(statement)
                    .bind(&delivery.workflow)
                    .bind(&url)
                    .bind(now)
                    .execute(&mut *transaction)
                    .await
                    .map_err(failed)?;
            }
        }
        transaction.commit().await.map_err(failed)
    }

    async fn deliveries(&self, state: Option<DeliveryState>, limit: u32) -> Result<Vec<Delivery>> {
        sqlx::query("SELECT * FROM deliveries WHERE (?1 IS NULL OR state = ?1) ORDER BY id DESC LIMIT ?2")
            .bind(state.map(DeliveryState::as_str))
            .bind(limit)
            .fetch_all(&self.0.readers)
            .await
            .map_err(|error| explain("list messages", error))?
            .iter()
            .map(decode)
            .collect()
    }

    async fn waiting_deliveries(&self, run: &RunId) -> Result<u64> {
        let count: i64 =
            sqlx::query_scalar("SELECT count(*) FROM deliveries WHERE run = ?1 AND state = 'waiting'")
                .bind(run.as_str())
                .fetch_one(&self.0.readers)
                .await
                .map_err(|error| explain("count messages", error))?;
        Ok(count.cast_unsigned())
    }

    async fn redeliver(&self, id: i64) -> Result<Delivery> {
        let failed = |error| explain("have a message tried again", error);
        let mut writer = self.0.writer.lock().await;
        let mut transaction = self.begin(&mut writer).await.map_err(failed)?;
        let now = micros(self.0.clock.now());
        let row = sqlx::query(
            "UPDATE deliveries SET state = 'waiting', attempts = 0, due = ?2, changed_at = ?2 WHERE id = ?1
             RETURNING *",
        )
        .bind(id)
        .bind(now)
        .fetch_optional(&mut *transaction)
        .await
        .map_err(failed)?;
        let Some(row) = row else {
            return Err(Diagnostic::new("usage::unknown_delivery", format!("there is no delivery {id}"))
                .help("`tidemill deliveries` lists them with their numbers"));
        };
        let delivery = decode(&row)?;
        sqlx::query("DELETE FROM gone_targets WHERE workflow = ?1 AND url = ?2")
            .bind(&delivery.workflow)
            .bind(to_json(&delivery.target.url)?)
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
        transaction.commit().await.map_err(failed)?;
        Ok(delivery)
    }
}

/// Puts a message for every target of the run's script beside `event`, where it is a moment they want to know of.
pub(in crate::store) async fn tell_targets(
    connection: &mut SqliteConnection,
    workflow: &str,
    script: &Digest,
    event: &Event,
) -> Result<()> {
    let Some(moment) = Moment::of(&event.what) else {
        return Ok(());
    };
    let failed = |error| explain(&format!("record a message about run {}", event.run), error);
    let rows = sqlx::query("SELECT place, target FROM targets WHERE script = ?1 ORDER BY place")
        .bind(script.as_str())
        .fetch_all(&mut *connection)
        .await
        .map_err(failed)?;
    for row in rows {
        let text: &str = row.try_get("target").map_err(failed)?;
        let target: Notify = json(text, "who is told of runs")?;
        if !target.events.contains(&moment) {
            continue;
        }
        sqlx::query(
            "INSERT INTO deliveries (run, seq, place, workflow, moment, target, url, at, due, changed_at, state)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?8, CASE WHEN EXISTS
             (SELECT 1 FROM gone_targets WHERE workflow = ?4 AND url = ?7) THEN 'gone' ELSE 'waiting' END)",
        )
        .bind(event.run.as_str())
        .bind(i64::try_from(event.seq).unwrap_or(i64::MAX))
        .bind(row.try_get::<i64, _>("place").map_err(failed)?)
        .bind(workflow)
        .bind(moment.as_str())
        .bind(text)
        .bind(to_json(&target.url)?)
        .bind(micros(event.at))
        .execute(&mut *connection)
        .await
        .map_err(failed)?;
    }
    Ok(())
}

fn decode(row: &SqliteRow) -> Result<Delivery> {
    let failed = |error| explain("read a message", error);
    let word = |column: &str| row.try_get::<&str, _>(column).map_err(failed);
    Ok(Delivery {
        id: row.try_get("id").map_err(failed)?,
        run: RunId::parse(word("run")?).ok_or_else(|| unreadable("a run's id"))?,
        seq: row.try_get::<i64, _>("seq").map_err(failed)?.cast_unsigned(),
        place: row.try_get("place").map_err(failed)?,
        workflow: row.try_get("workflow").map_err(failed)?,
        moment: Moment::parse(word("moment")?).ok_or_else(|| unreadable("a moment of a run"))?,
        target: json(word("target")?, "who is told of runs")?,
        at: instant(row, "at")?,
        state: DeliveryState::parse(word("state")?).ok_or_else(|| unreadable("a message's state"))?,
        attempts: row.try_get("attempts").map_err(failed)?,
        due: instant(row, "due")?,
        changed_at: instant(row, "changed_at")?,
        status: row.try_get("status").map_err(failed)?,
        answer: row.try_get("answer").map_err(failed)?,
        error: row.try_get("error").map_err(failed)?,
    })
}
