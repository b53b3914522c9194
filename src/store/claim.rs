//! The claim: the rows of files that were taken together and the rows of all their runs, in one transaction.
//!
//! Whether a run would be one that was made before is asked in that same transaction, so that of two equal files that
//! come at once one is the duplicate of the other.

use std::path::PathBuf;

use jiff::Timestamp;
use sqlx::{Row as _, SqliteConnection};

use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::{Digest, RunId};
use crate::event::input::{Fingerprint, RawPath, Role};
use crate::event::state::InputState;
use crate::store::Store;
use crate::store::column::{micros, to_json};
use crate::store::error::{explain, unreadable};
use crate::store::ledger::{InputId, InputRow, bytes, decode, remember, turn};
use crate::store::log::insert;
use crate::store::run::{self, NewRun, RunRow};
use crate::store::then::Then;
use crate::workflow::trigger::Dedupe;

/// Files that were taken together, and the runs they become.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// The files; the first one stands for all.
    pub files: Vec<ClaimedFile>,
    /// The runs, one for each workflow and batch.
    pub runs: Vec<DropRun>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedFile {
    /// Its row.
    pub input: InputId,
    /// The version that was read.
    pub fingerprint: Fingerprint,
    /// Hash of what was read.
    pub digest: Digest,
    /// What it is for, when it goes with another one.
    pub role: Option<Role>,
    /// Whether it was copied and stays in the inbox meanwhile.
    pub kept: bool,
    /// Where it goes when its runs succeeded.
    pub on_success: Then,
    /// Where it goes when not.
    pub on_failure: Then,
}

/// A run that a drop makes, and what would make another one the same.
#[derive(Debug, Clone, PartialEq)]
pub struct DropRun {
    /// The run.
    pub run: NewRun,
    /// The path of its file, or what its batch has in common.
    pub place: RawPath,
    /// Hash of all its files.
    pub content: Digest,
    /// What counts as the same.
    pub dedupe: Dedupe,
    /// How far back that is looked for; as far as there are rows without.
    pub since: Option<Timestamp>,
}

/// What became of a claim.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claimed {
    /// Runs that were queued: workflow and id.
    pub queued: Vec<(String, RunId)>,
    /// Workflows for which it is a duplicate, with the run of which.
    pub duplicates: Vec<(String, RunId)>,
}

impl Claim {
    /// Of one file that is moved, for runs that are never duplicates.
    pub fn of(input: InputId, fingerprint: Fingerprint, digest: Digest, runs: Vec<NewRun>) -> Self {
        let runs = runs.into_iter().map(|run| DropRun {
            place: run.inputs.first().map_or_else(|| RawPath::new(""), |file| file.path.clone()),
            run,
            content: digest.clone(),
            dedupe: Dedupe::None,
            since: None,
        });
        let runs = runs.collect();
        let (on_success, on_failure) = (Then::Usual, Then::Usual);
        let file =
            ClaimedFile { input, fingerprint, digest, role: None, kept: false, on_success, on_failure };
        Self { files: vec![file], runs }
    }
}

impl Store {
    /// Claims files that were taken: their rows and the rows of all their runs, in one transaction. Gives what became of
    /// each claim: a run that is the same as one before is not queued, and files without any run are duplicates.
    ///
    /// A file that is claimed already is an error (`store::claimed_twice`), and nothing is written.
    pub async fn claim(&self, claims: &[Claim]) -> Result<Vec<Claimed>> {
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

    /// The inputs that were claimed together with this one, itself included, the first one first.
    pub async fn parcel(&self, input: InputId) -> Result<Vec<InputRow>> {
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

    /// The runs of all inputs that were claimed together with this one, oldest first.
    pub async fn runs_of_parcel(&self, input: InputId) -> Result<Vec<RunRow>> {
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

    /// Where the files of a run stand, absolute, in the order of its inputs. None when it was not dropped.
    pub async fn claimed_files(&self, run: &RunRow) -> Result<Vec<PathBuf>> {
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

    /// Where the file of a claimed input stands, absolute. `None` when it was not claimed.
    pub async fn claimed(&self, input: InputId) -> Result<Option<PathBuf>> {
        let row = self.input(input).await?;
        Ok(row.and_then(|row| row.claimed_path).map(|path| self.folder().join(path)))
    }

    /// The inputs that were claimed and stand in the inbox all the same, oldest first.
    pub async fn kept(&self) -> Result<Vec<InputRow>> {
        sqlx::query("SELECT * FROM inputs WHERE kept AND role IS NULL ORDER BY id")
            .fetch_all(&self.0.readers)
            .await
            .map_err(|error| explain("read the ledger", error))?
            .iter()
            .map(decode)
            .collect()
    }

    /// Files that were kept in the inbox stand there no more.
    pub async fn let_go(&self, paths: &[RawPath]) -> Result<()> {
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

    /// The workflows whose files were watched for before.
    pub async fn watched(&self) -> Result<Vec<String>> {
        sqlx::query_scalar("SELECT workflow FROM watched")
            .fetch_all(&self.0.readers)
            .await
            .map_err(|error| explain("read what was watched", error))
    }

    /// Records that the files of these workflows are watched for from now on.
    pub async fn note_watched(&self, workflows: &[String]) -> Result<()> {
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
