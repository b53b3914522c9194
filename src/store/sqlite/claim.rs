//! The claim: the rows of files that were taken together and the rows of all their runs, in one transaction.

use std::path::PathBuf;

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::{Row as _, SqliteConnection};

use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::RunId;
use crate::event::input::{RawPath, Role};
use crate::event::state::InputState;
use crate::store::claim::{Claim, Claimed, Claims, DropRun};
use crate::store::ledger::Ledger as _;
use crate::store::ledger::{InputId, InputRow};
use crate::store::run::RunRow;
use crate::store::sqlite::Sqlite;
use crate::store::sqlite::column::{micros, to_json};
use crate::store::sqlite::error::{explain, unreadable};
use crate::store::sqlite::ledger::{bytes, decode, remember, turn};
use crate::store::sqlite::log::insert;
use crate::store::sqlite::run;
use crate::workflow::trigger::Dedupe;

#[async_trait]
impl Claims for Sqlite {
    async fn claim(&self, claims: &[Claim]) -> Result<Vec<Claimed>> {
        let failed = |error| explain("claim a file", error);
        let at = self.0.clock.now();
        let mut writer = self.0.writer.lock().await;
        let mut transaction = self.begin(&mut writer).await.map_err(failed)?;
        let (mut events, mut done) = (Vec::new(), Vec::with_capacity(claims.len()));
        for claim in claims {
            require_ready(&mut transaction, claim).await?;
            let mut claimed = Claimed::default();
            for run in &claim.runs {
                let workflow = run.run.workflow.clone();
                if let Some(before) = same(&mut transaction, run).await? {
                    claimed.duplicates.push((workflow, before));
                    continue;
                }
                events.extend(insert(&mut transaction, &run.run).await?);
                note_taken(&mut transaction, run).await?;
                claimed.queued.push((workflow, run.run.id.clone()));
            }
            enter(&mut transaction, claim, &claimed, at).await?;
            done.push(claimed);
        }
        transaction.commit().await.map_err(failed)?;
        self.tell(events);
        Ok(done)
    }

    async fn parcel(&self, input: InputId) -> Result<Vec<InputRow>> {
        sqlx::query(
            "SELECT * FROM inputs WHERE id = ?1 OR parcel = (SELECT parcel FROM inputs WHERE id = ?1)
             ORDER BY id <> coalesce(parcel, id), id",
        )
        .bind(input)
        .fetch_all(&self.0.readers)
        .await
        .map_err(|error| explain("read the ledger", error))?
        .iter()
        .map(decode)
        .collect()
    }

    async fn runs_of_parcel(&self, input: InputId) -> Result<Vec<RunRow>> {
        sqlx::query(
            "SELECT * FROM runs WHERE input = ?1 OR input IN (SELECT id FROM inputs WHERE parcel =
             (SELECT parcel FROM inputs WHERE id = ?1)) ORDER BY number",
        )
        .bind(input)
        .fetch_all(&self.0.readers)
        .await
        .map_err(|error| explain("list runs", error))?
        .iter()
        .map(run::decode)
        .collect()
    }

    async fn claimed_files(&self, run: &RunRow) -> Result<Vec<PathBuf>> {
        let Some(input) = run.input else {
            return Ok(Vec::new());
        };
        let rows = self.parcel(input).await?;
        let claimed = |path: &RawPath| {
            let row = rows.iter().find(|row| row.path == *path)?;
            row.claimed_path.as_ref().map(|claimed| self.folder().join(claimed))
        };
        Ok(run.inputs.iter().filter_map(|file| claimed(&file.path)).collect())
    }

    async fn claimed(&self, input: InputId) -> Result<Option<PathBuf>> {
        let row = self.input(input).await?;
        Ok(row.and_then(|row| row.claimed_path).map(|path| self.folder().join(path)))
    }

    async fn kept(&self) -> Result<Vec<InputRow>> {
        sqlx::query("SELECT * FROM inputs WHERE kept AND role IS NULL ORDER BY id")
            .fetch_all(&self.0.readers)
            .await
            .map_err(|error| explain("read the ledger", error))?
            .iter()
            .map(decode)
            .collect()
    }

    async fn let_go(&self, paths: &[RawPath]) -> Result<()> {
        let failed = |error| explain("record what left the inbox", error);
        let mut writer = self.0.writer.lock().await;
        let mut transaction = self.begin(&mut writer).await.map_err(failed)?;
        for path in paths {
            sqlx::query("UPDATE inputs SET kept = 0 WHERE path = ?1 AND kept")
                .bind(bytes(path.as_path()))
                .execute(&mut *transaction)
                .await
                .map_err(failed)?;
        }
        transaction.commit().await.map_err(failed)
    }

    async fn watched(&self) -> Result<Vec<String>> {
        sqlx::query_scalar("SELECT workflow FROM watched")
            .fetch_all(&self.0.readers)
            .await
            .map_err(|error| explain("read what was watched", error))
    }

    async fn note_watched(&self, workflows: &[String]) -> Result<()> {
        let at = micros(self.0.clock.now());
        let writer = &mut *self.0.writer.lock().await;
        sqlx::query("INSERT OR IGNORE INTO watched (workflow, since) SELECT value, ?2 FROM json_each(?1)")
            .bind(to_json(&workflows)?)
            .bind(at)
            .execute(writer)
            .await
            .map(drop)
            .map_err(|error| explain("record what is watched", error))
    }
}

/// Files that somebody else claimed are not claimed again.
async fn require_ready(connection: &mut SqliteConnection, claim: &Claim) -> Result<()> {
    for file in &claim.files {
        let state: String = sqlx::query_scalar("SELECT state FROM inputs WHERE id = ?1")
            .bind(file.input)
            .fetch_one(&mut *connection)
            .await
            .map_err(|error| explain("claim a file", error))?;
        if state != InputState::Ready.as_str() {
            let message = format!("input {} is {state} and cannot be claimed", file.input);
            return Err(Diagnostic::new("store::claimed_twice", message)
                .help("two daemons on one project? `tidemill explain PATH` shows its history"));
        }
    }
    Ok(())
}

/// The run that was made from the same before, if that counts: one that succeeded, or may.
async fn same(connection: &mut SqliteConnection, run: &DropRun) -> Result<Option<RunId>> {
    let which = match run.dedupe {
        Dedupe::None => return Ok(None),
        Dedupe::Path => "taken.place = ?2 AND ?3 = ?3",
        Dedupe::Content => "taken.content = ?3 AND ?2 = ?2",
        Dedupe::PathAndContent => "taken.place = ?2 AND taken.content = ?3",
    };
    let sql = format!(
        "SELECT taken.run FROM taken JOIN runs ON runs.id = taken.run WHERE taken.workflow = ?1 AND {which}
         AND taken.at >= ?4 AND (runs.ended_at IS NULL OR runs.state = 'succeeded')
         ORDER BY runs.number DESC LIMIT 1"
    );
    let found = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(&run.run.workflow)
        .bind(bytes(run.place.as_path()))
        .bind(run.content.as_str())
        .bind(run.since.map_or(i64::MIN, micros))
        .fetch_optional(connection)
        .await
        .map_err(|error| explain("look for the same file", error))?;
    let id = found.map(|row| row.try_get::<String, _>(0)).transpose();
    let id = id.map_err(|error| explain("look for the same file", error))?;
    id.map(|id| RunId::parse(&id).ok_or_else(|| unreadable("a run's id"))).transpose()
}

async fn note_taken(connection: &mut SqliteConnection, run: &DropRun) -> Result<()> {
    sqlx::query("INSERT INTO taken (run, workflow, place, content, at) VALUES (?1, ?2, ?3, ?4, ?5)")
        .bind(run.run.id.as_str())
        .bind(&run.run.workflow)
        .bind(bytes(run.place.as_path()))
        .bind(run.content.as_str())
        .bind(micros(run.run.at))
        .execute(connection)
        .await
        .map(drop)
        .map_err(|error| explain("claim a file", error))
}

/// Turns the rows of a claim to `claimed`, or to `duplicate` when no run was queued.
async fn enter(
    connection: &mut SqliteConnection,
    claim: &Claim,
    claimed: &Claimed,
    at: Timestamp,
) -> Result<()> {
    let failed = |error| explain("claim a file", error);
    let workflows: Vec<&str> = claimed.queued.iter().map(|(workflow, _)| workflow.as_str()).collect();
    let state = if workflows.is_empty() { InputState::Duplicate } else { InputState::Claimed };
    let reason = reason(claim, claimed, &workflows);
    let parcel = claim.files.first().map(|file| file.input);
    for file in &claim.files {
        turn(connection, file.input, state, Some(&reason), at).await?;
        remember(connection, file.input, file.fingerprint).await?;
        sqlx::query(
            "UPDATE inputs SET digest = ?2, workflows = ?3, parcel = ?4, role = ?5, kept = ?6, on_success = ?7,
             on_failure = ?8 WHERE id = ?1",
        )
        .bind(file.input)
        .bind(file.digest.as_str())
        .bind(to_json(&workflows)?)
        .bind(parcel)
        .bind(file.role.map(Role::as_str))
        .bind(file.kept)
        .bind(file.on_success.encode())
        .bind(file.on_failure.encode())
        .execute(&mut *connection)
        .await
        .map_err(failed)?;
    }
    Ok(())
}

fn reason(claim: &Claim, claimed: &Claimed, workflows: &[&str]) -> String {
    let mut parts = Vec::new();
    if !workflows.is_empty() {
        parts.push(format!("claimed for {}", workflows.join(", ")));
    }
    for (workflow, before) in &claimed.duplicates {
        let run = claim.runs.iter().find(|run| run.run.workflow == *workflow);
        let (what, option) = match run.map(|run| run.dedupe) {
            Some(Dedupe::Path) => ("path", "path"),
            Some(Dedupe::Content) => ("content", "content"),
            _ => ("path and content", "path+content"),
        };
        parts.push(format!("the same {what} as in run {before} (`dedupe = \"{option}\"` of {workflow})"));
    }
    parts.join("; ")
}
