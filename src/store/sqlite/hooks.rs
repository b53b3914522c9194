//! Requests of webhooks: which of them made runs.

use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use sqlx::Row as _;

use crate::diagnostic::Result;
use crate::event::id::RunId;
use crate::store::hooks::{Heard, RequestKey, Requests};
use crate::store::run::NewRun;
use crate::store::sqlite::Sqlite;
use crate::store::sqlite::column::{instant, micros};
use crate::store::sqlite::error::{explain, unreadable};
use crate::store::sqlite::log::insert;

#[async_trait]
impl Requests for Sqlite {
    async fn heard(&self, key: &RequestKey<'_>, now: Timestamp) -> Result<Option<RunId>> {
        let failed = |error| explain("look for a request", error);
        let row = sqlx::query("SELECT run, at FROM hook_requests WHERE hook = ?1 AND key = ?2")
            .bind(key.hook)
            .bind(key.digest.as_str())
            .fetch_optional(&self.0.readers)
            .await
            .map_err(failed)?;
        row.and_then(|row| still_counts(&row, key.window, now).transpose()).transpose()
    }

    async fn hear(&self, key: &RequestKey<'_>, run: &NewRun) -> Result<Heard> {
        let failed = |error| explain(&format!("queue a run of the webhook {}", key.hook), error);
        let mut writer = self.0.writer.lock().await;
        let mut transaction = self.begin(&mut writer).await.map_err(failed)?;
        let found = sqlx::query("SELECT run, at FROM hook_requests WHERE hook = ?1 AND key = ?2")
            .bind(key.hook)
            .bind(key.digest.as_str())
            .fetch_optional(&mut *transaction)
            .await
            .map_err(failed)?;
        if let Some(row) = found
            && let Some(before) = still_counts(&row, key.window, run.at)?
        {
            return Ok(Heard::Before(before));
        }
        let events = insert(&mut transaction, run).await?;
        sqlx::query("INSERT OR REPLACE INTO hook_requests (hook, key, run, at) VALUES (?1, ?2, ?3, ?4)")
            .bind(key.hook)
            .bind(key.digest.as_str())
            .bind(run.id.as_str())
            .bind(micros(run.at))
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
        transaction.commit().await.map_err(failed)?;
        self.tell(events);
        Ok(Heard::Now)
    }
}

/// The run of a row, when a request at `now` is a repeat of the row's.
fn still_counts(
    row: &sqlx::sqlite::SqliteRow,
    window: Option<Duration>,
    now: Timestamp,
) -> Result<Option<RunId>> {
    let at = instant(row, "at")?;
    let window = window.map(|window| SignedDuration::try_from(window).unwrap_or(SignedDuration::MAX));
    if window.is_some_and(|window| now.duration_since(at) > window) {
        return Ok(None);
    }
    let run: &str = row.try_get("run").map_err(|error| explain("look for a request", error))?;
    RunId::parse(run).map(Some).ok_or_else(|| unreadable("a run's id"))
}
