//! Forgetting what ended long ago: runs with their events, and inputs that have no run left.

use std::collections::HashSet;

use async_trait::async_trait;
use futures_util::TryStreamExt as _;
use jiff::Timestamp;

use crate::diagnostic::Result;
use crate::event::id::{Digest, RunId};
use crate::store::retention::Retention;
use crate::store::sqlite::Sqlite;
use crate::store::sqlite::column::{micros, to_json};
use crate::store::sqlite::error::explain;

/// A run that ended before `?1`, whose input, if it has one, was put away, and whose messages have arrived or were given
/// up: nothing will ask for it again. Never
/// NULL, so that its opposite is the rest.
const OUTLIVED: &str =
    "(runs.ended_at IS NOT NULL AND runs.ended_at < ?1 AND (runs.input IS NULL OR runs.input IN
    (SELECT id FROM inputs WHERE state IN ('done', 'failed', 'rejected', 'duplicate', 'gone')))
    AND NOT EXISTS (SELECT 1 FROM deliveries WHERE deliveries.run = runs.id AND deliveries.state = 'waiting'))";

/// An input that was through before `?1` and has no run but those that are forgotten with it.
const INPUTS: &str = "inputs.changed_at < ?1 AND inputs.state IN ('done', 'failed', 'rejected', 'duplicate', 'gone')
    AND NOT inputs.kept AND NOT (inputs.state = 'duplicate' AND inputs.claimed_path IS NOT NULL)
    AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.input = inputs.id AND (runs.ended_at IS NULL OR runs.ended_at >= ?1))";

/// Before the first run ever: nothing ended before it.
const NEVER: i64 = i64::MIN;

#[async_trait]
impl Retention for Sqlite {
    async fn outlived(&self, before: Timestamp) -> Result<Vec<RunId>> {
        let sql = format!("SELECT id FROM runs WHERE {OUTLIVED} ORDER BY number");
        let ids: Vec<String> = sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
            .bind(micros(before))
            .fetch_all(&self.0.readers)
            .await
            .map_err(|error| explain("look for old runs", error))?;
        Ok(ids.iter().filter_map(|id| RunId::parse(id)).collect())
    }

    async fn outlived_inputs(&self, before: Timestamp) -> Result<u64> {
        let sql = format!("SELECT count(*) FROM inputs WHERE {INPUTS}");
        let count: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
            .bind(micros(before))
            .fetch_one(&self.0.readers)
            .await
            .map_err(|error| explain("look for old inputs", error))?;
        Ok(count.unsigned_abs())
    }

    async fn forget_runs(&self, runs: &[RunId]) -> Result<()> {
        let failed = |error| explain("forget old runs", error);
        let ids: Vec<&str> = runs.iter().map(RunId::as_str).collect();
        let ids = to_json(&ids)?;
        let mut writer = self.0.writer.lock().await;
        let mut transaction = self.begin(&mut writer).await.map_err(failed)?;
        for statement in [
            "DELETE FROM events WHERE run IN (SELECT value FROM json_each(?1))",
            // The last instant stays: the next run is told of it.
            "DELETE FROM fires WHERE run IN (SELECT value FROM json_each(?1)) AND scheduled_at <
             (SELECT max(scheduled_at) FROM fires AS last WHERE last.schedule = fires.schedule)",
            "DELETE FROM runs WHERE id IN (SELECT value FROM json_each(?1)) AND ended_at IS NOT NULL",
        ] {
            sqlx::query(statement).bind(&ids).execute(&mut *transaction).await.map_err(failed)?;
        }
        transaction.commit().await.map_err(failed)
    }

    async fn forget_inputs(&self, before: Timestamp) -> Result<()> {
        let failed = |error| explain("forget old inputs", error);
        let without = format!("{INPUTS} AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.input = inputs.id)");
        let mut writer = self.0.writer.lock().await;
        let mut transaction = self.begin(&mut writer).await.map_err(failed)?;
        for statement in [
            format!("DELETE FROM input_changes WHERE input IN (SELECT id FROM inputs WHERE {without})"),
            format!("DELETE FROM inputs WHERE {without}"),
        ] {
            let query = sqlx::query(sqlx::AssertSqlSafe(statement)).bind(micros(before));
            query.execute(&mut *transaction).await.map_err(failed)?;
        }
        transaction.commit().await.map_err(failed)
    }

    async fn mentioned(&self, before: Option<Timestamp>) -> Result<HashSet<Digest>> {
        let failed = |error| explain("read what is kept", error);
        let before = before.map_or(NEVER, micros);
        let mut found = HashSet::new();
        for sql in [
            format!("SELECT what FROM events JOIN runs ON runs.id = events.run WHERE NOT {OUTLIVED}"),
            format!("SELECT script || ' ' || inputs FROM runs WHERE NOT {OUTLIVED}"),
            // What the next runs are made of; the parameter is there for all alike.
            "SELECT bundle FROM workflow_versions WHERE ?1 IS NOT NULL".to_owned(),
        ] {
            let mut texts =
                sqlx::query_scalar::<_, String>(sqlx::AssertSqlSafe(sql)).bind(before).fetch(&self.0.readers);
            while let Some(text) = texts.try_next().await.map_err(failed)? {
                found.extend(hashes(&text));
            }
        }
        Ok(found)
    }
}

/// What looks like a hash in a text.
pub(in crate::store) fn hashes(text: &str) -> impl Iterator<Item = Digest> {
    const LENGTH: usize = 64;
    let words = text.split(|c: char| !c.is_ascii_hexdigit()).filter(|word| word.len() >= LENGTH);
    words.flat_map(|word| (0..=word.len() - LENGTH).filter_map(|at| Digest::parse(&word[at..at + LENGTH])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_found_wherever_it_stands() {
        let (one, two) = (Digest::of("1"), Digest::of("2"));
        let text = format!("{{\"blob\":\"{one}\",\"image\":\"sha256:{two}\",\"short\":\"{}\"}}", one.short());
        assert_eq!(hashes(&text).collect::<Vec<_>>(), [one.clone(), two]);
        // Even with more of its kind around it.
        assert!(hashes(&format!("ab{one}cd")).any(|found| found == one));
    }
}
