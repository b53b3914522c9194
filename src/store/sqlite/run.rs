//! The row of a run: what lists and the queue need without reading its log.

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use crate::diagnostic::{Diagnostic, Result, nearest};
use crate::event::again::Again;
use crate::event::id::RunId;
use crate::event::state::RunState;
use crate::event::trigger::Trigger;
use crate::event::usage::Cost;
use crate::store::ledger::InputId;
use crate::store::run::{RunFilter, RunRow, Runs};
use crate::store::sqlite::Sqlite;
use crate::store::sqlite::column::{digest, instant, json, micros, moment, to_json};
use crate::store::sqlite::error::{explain, unreadable};

#[async_trait]
impl Runs for Sqlite {
    async fn run(&self, id: &RunId) -> Result<Option<RunRow>> {
        sqlx::query("SELECT * FROM runs WHERE id = ?1")
            .bind(id.as_str())
            .fetch_optional(&self.0.readers)
            .await
            .map_err(|error| explain("read a run", error))?
            .map(|row| decode(&row))
            .transpose()
    }

    async fn fresh_id(&self, now: Timestamp) -> Result<RunId> {
        loop {
            let id = RunId::new(now);
            if self.run(&id).await?.is_none() {
                return Ok(id);
            }
        }
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>> {
        sqlx::query(
            "SELECT * FROM runs WHERE (?1 IS NULL OR workflow = ?1) AND (?2 IS NULL OR state = ?2)
             ORDER BY number DESC LIMIT ?3",
        )
        .bind(filter.workflow.as_deref())
        .bind(filter.state.map(RunState::as_str))
        .bind(filter.limit.map_or(-1, i64::from))
        .fetch_all(&self.0.readers)
        .await
        .map_err(|error| explain("list runs", error))?
        .iter()
        .map(decode)
        .collect()
    }

    async fn to_retry(
        &self,
        states: &[RunState],
        workflow: Option<&str>,
        since: Option<Timestamp>,
    ) -> Result<Vec<RunRow>> {
        let states: Vec<&str> = states.iter().map(|state| state.as_str()).collect();
        sqlx::query(
            "SELECT * FROM runs WHERE state IN (SELECT value FROM json_each(?1)) AND ended_at IS NOT NULL
             AND (?2 IS NULL OR workflow = ?2) AND (?3 IS NULL OR ended_at >= ?3)
             AND id NOT IN (SELECT retry_of FROM runs WHERE retry_of IS NOT NULL) ORDER BY number",
        )
        .bind(to_json(&states)?)
        .bind(workflow)
        .bind(since.map(micros))
        .fetch_all(&self.0.readers)
        .await
        .map_err(|error| explain("list runs", error))?
        .iter()
        .map(decode)
        .collect()
    }

    async fn runs_of(&self, input: InputId) -> Result<Vec<RunRow>> {
        sqlx::query("SELECT * FROM runs WHERE input = ?1 ORDER BY number")
            .bind(input)
            .fetch_all(&self.0.readers)
            .await
            .map_err(|error| explain("list runs", error))?
            .iter()
            .map(decode)
            .collect()
    }

    async fn resolve(&self, text: &str) -> Result<RunRow> {
        /// More than these are never shown; a suggestion from far back is no help.
        const RECENT: u32 = 1000;
        if let Some(id) = RunId::parse(text) {
            if let Some(row) = self.run(&id).await? {
                return Ok(row);
            }
            // An id holds no pattern characters, see `RunId::parse`.
            let found = sqlx::query(
                "SELECT * FROM runs WHERE id LIKE ?1 || '%' OR id LIKE '%' || ?1 ORDER BY number DESC LIMIT 4",
            )
            .bind(id.as_str())
            .fetch_all(&self.0.readers)
            .await
            .map_err(|error| explain("look for a run", error))?;
            match found.as_slice() {
                [] => {}
                [only] => return decode(only),
                several => {
                    let ids: Vec<String> = several.iter().map(id_of).collect::<Result<_>>()?;
                    return Err(Diagnostic::new(
                        "usage::ambiguous_run",
                        format!("several runs fit `{text}`"),
                    )
                    .help(format!("write more of the id: {}", ids.join(", "))));
                }
            }
        }
        let recent: Vec<String> = sqlx::query_scalar("SELECT id FROM runs ORDER BY number DESC LIMIT ?1")
            .bind(RECENT)
            .fetch_all(&self.0.readers)
            .await
            .map_err(|error| explain("look for a run", error))?;
        let help = match nearest(text, recent.iter().map(String::as_str)) {
            _ if recent.is_empty() => {
                "there is no run yet; `tidemill run WORKFLOW FILE` makes one".to_owned()
            }
            Some(near) => format!("did you mean `{near}`? `tidemill runs` lists all"),
            None => "`tidemill runs` lists all".to_owned(),
        };
        let shown = crate::event::input::printable(text.as_ref());
        Err(Diagnostic::new("usage::unknown_run", format!("no run fits `{shown}`")).help(help))
    }
}

fn id_of(row: &SqliteRow) -> Result<String> {
    row.try_get("id").map_err(|error| explain("read a run", error))
}

/// A row of the table as a [`RunRow`].
pub(in crate::store) fn decode(row: &SqliteRow) -> Result<RunRow> {
    let failed = |error| explain("read a run", error);
    let state: String = row.try_get("state").map_err(failed)?;
    Ok(RunRow {
        id: RunId::parse(&id_of(row)?).ok_or_else(|| unreadable("a run's id"))?,
        workflow: row.try_get("workflow").map_err(failed)?,
        trigger: Trigger::parse(row.try_get("trigger").map_err(failed)?)
            .ok_or_else(|| unreadable("what started a run"))?,
        state: RunState::parse(&state).ok_or_else(|| unreadable("a run's state"))?,
        model: row.try_get("model").map_err(failed)?,
        script: digest(row, "script")?,
        inputs: json(row.try_get("inputs").map_err(failed)?, "a run's inputs")?,
        params: json(row.try_get("params").map_err(failed)?, "a run's params")?,
        input: row.try_get("input").map_err(failed)?,
        queued_at: instant(row, "queued_at")?,
        started_at: moment(row, "started_at")?,
        ended_at: moment(row, "ended_at")?,
        turns: row.try_get("turns").map_err(failed)?,
        usage: json(row.try_get("usage").map_err(failed)?, "a run's usage")?,
        cost: row.try_get::<Option<f64>, _>("cost_usd").map_err(failed)?.map(Cost::from_usd),
        published: row.try_get("published").map_err(failed)?,
        report: row
            .try_get::<Option<&str>, _>("report")
            .map_err(failed)?
            .map(|text| json(text, "a run's report"))
            .transpose()?,
        attempts: row.try_get("attempts").map_err(failed)?,
        fence: fence(row)?,
        holder: row.try_get("holder").map_err(failed)?,
        by_hand: row.try_get("by_hand").map_err(failed)?,
        again: again(row)?,
        retry_of: row.try_get::<Option<&str>, _>("retry_of").map_err(failed)?.and_then(RunId::parse),
        cancel_at: moment(row, "cancel_at")?,
    })
}

/// How often a run was taken.
pub(in crate::store) fn fence(row: &SqliteRow) -> Result<u64> {
    let fence: i64 = row.try_get("fence").map_err(|error| explain("read a run", error))?;
    Ok(fence.cast_unsigned())
}

/// Why a run is tried again.
pub(in crate::store) fn again(row: &SqliteRow) -> Result<Option<Again>> {
    let text: Option<&str> = row.try_get("again").map_err(|error| explain("read a run", error))?;
    text.map(|text| json(text, "why a run is tried again")).transpose()
}
