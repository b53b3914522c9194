//! The ledger: every input the drop folder ever saw, and why it stands where it stands.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row as _, SqliteConnection};

use crate::diagnostic::Result;
use crate::event::id::Digest;
use crate::event::input::{Fingerprint, InputChange, RawPath, Role};
use crate::event::state::InputState;
use crate::store::ledger::{Change, InputId, InputRow, Ledger, Taken};
use crate::store::sqlite::Sqlite;
use crate::store::sqlite::column::{instant, json, micros, to_json};
use crate::store::sqlite::error::{explain, unreadable};
use crate::store::then::Then;

#[async_trait]
impl Ledger for Sqlite {
    async fn record(&self, changes: &[InputChange]) -> Result<Vec<InputId>> {
        let failed = |error| explain("record what the inbox holds", error);
        let at = self.0.clock.now();
        let mut writer = self.0.writer.lock().await;
        let mut transaction = self.begin(&mut writer).await.map_err(failed)?;
        let mut ids = Vec::with_capacity(changes.len());
        for change in changes {
            ids.push(enter(&mut transaction, change, at).await?);
        }
        transaction.commit().await.map_err(failed)?;
        Ok(ids)
    }

    async fn ready(&self, changes: &[InputChange]) -> Result<Vec<Taken>> {
        let failed = |error| explain("record a file as ready", error);
        let at = self.0.clock.now();
        let mut writer = self.0.writer.lock().await;
        let mut transaction = self.begin(&mut writer).await.map_err(failed)?;
        let mut taken = Vec::with_capacity(changes.len());
        for change in changes {
            let input = enter(&mut transaction, change, at).await?;
            let claimed_path = Path::new("claimed").join(input.to_string()).join(change.path.name());
            sqlx::query("UPDATE inputs SET claimed_path = ?2 WHERE id = ?1")
                .bind(input)
                .bind(bytes(&claimed_path))
                .execute(&mut *transaction)
                .await
                .map_err(failed)?;
            taken.push(Taken { input, claimed_path });
        }
        transaction.commit().await.map_err(failed)?;
        Ok(taken)
    }

    async fn put_back(&self, input: InputId, state: InputState, reason: &str) -> Result<()> {
        let failed = |error| explain("record a file as put back", error);
        let at = self.0.clock.now();
        let mut writer = self.0.writer.lock().await;
        let mut transaction = self.begin(&mut writer).await.map_err(failed)?;
        turn(&mut transaction, input, state, Some(reason), at).await?;
        sqlx::query("UPDATE inputs SET claimed_path = NULL WHERE id = ?1")
            .bind(input)
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
        transaction.commit().await.map_err(failed)
    }

    async fn bound_for(&self, input: InputId, final_path: &Path) -> Result<()> {
        let writer = &mut *self.0.writer.lock().await;
        sqlx::query("UPDATE inputs SET final_path = ?2 WHERE id = ?1")
            .bind(input)
            .bind(bytes(final_path))
            .execute(writer)
            .await
            .map(drop)
            .map_err(|error| explain("record where a file goes", error))
    }

    async fn finish(&self, input: InputId, state: InputState, reason: &str) -> Result<()> {
        self.end(input, state, reason, "kept = 0").await
    }

    async fn finish_kept(&self, input: InputId, state: InputState, reason: &str) -> Result<()> {
        self.end(input, state, reason, "kept = kept").await
    }

    async fn input(&self, input: InputId) -> Result<Option<InputRow>> {
        sqlx::query("SELECT * FROM inputs WHERE id = ?1")
            .bind(input)
            .fetch_optional(&self.0.readers)
            .await
            .map_err(|error| explain("read the ledger", error))?
            .map(|row| decode(&row))
            .transpose()
    }

    async fn inputs(&self, states: &[InputState]) -> Result<Vec<InputRow>> {
        let words: Vec<&str> = states.iter().map(|state| state.as_str()).collect();
        sqlx::query("SELECT * FROM inputs WHERE state IN (SELECT value FROM json_each(?1)) ORDER BY id")
            .bind(to_json(&words)?)
            .fetch_all(&self.0.readers)
            .await
            .map_err(|error| explain("read the ledger", error))?
            .iter()
            .map(decode)
            .collect()
    }

    async fn latest_inputs(&self, state: Option<InputState>, limit: u32) -> Result<Vec<InputRow>> {
        sqlx::query(
            "SELECT * FROM inputs WHERE ?1 IS NULL OR state = ?1 ORDER BY changed_at DESC, id DESC LIMIT ?2",
        )
        .bind(state.map(InputState::as_str))
        .bind(limit)
        .fetch_all(&self.0.readers)
        .await
        .map_err(|error| explain("read the ledger", error))?
        .iter()
        .map(decode)
        .collect()
    }

    async fn history(&self, path: &RawPath) -> Result<Vec<(InputRow, Vec<Change>)>> {
        let failed = |error| explain("read the ledger", error);
        let rows = sqlx::query("SELECT * FROM inputs WHERE path = ?1 ORDER BY id")
            .bind(bytes(path.as_path()))
            .fetch_all(&self.0.readers)
            .await
            .map_err(failed)?;
        let mut history = Vec::with_capacity(rows.len());
        for row in &rows {
            let row = decode(row)?;
            let changes = sqlx::query("SELECT * FROM input_changes WHERE input = ?1 ORDER BY id")
                .bind(row.id)
                .fetch_all(&self.0.readers)
                .await
                .map_err(failed)?
                .iter()
                .map(change)
                .collect::<Result<_>>()?;
            history.push((row, changes));
        }
        Ok(history)
    }
}

impl Sqlite {
    async fn end(&self, input: InputId, state: InputState, reason: &str, kept: &'static str) -> Result<()> {
        let failed = |error| explain("record a file as finished", error);
        let at = self.0.clock.now();
        let mut writer = self.0.writer.lock().await;
        let mut transaction = self.begin(&mut writer).await.map_err(failed)?;
        turn(&mut transaction, input, state, Some(reason), at).await?;
        // A duplicate with a claimed path is one that is still to be put away.
        let sql = format!(
            "UPDATE inputs SET {kept}, claimed_path = iif(state = 'duplicate', NULL, claimed_path) WHERE id = ?1"
        );
        sqlx::query(sqlx::AssertSqlSafe(sql)).bind(input).execute(&mut *transaction).await.map_err(failed)?;
        transaction.commit().await.map_err(failed)
    }
}

/// Enters the change of a file that stands in the inbox.
async fn enter(connection: &mut SqliteConnection, change: &InputChange, at: Timestamp) -> Result<InputId> {
    let failed = |error| explain("record a change of an input", error);
    let path = bytes(change.path.as_path());
    let [size, mtime_ns, inode, device] = numbers(change.fingerprint);
    // The same list as in the index `inputs_waiting`: the one row of a file that stands in the inbox.
    let waiting: Option<InputId> = sqlx::query_scalar(
        "SELECT id FROM inputs WHERE path = ?1 AND state IN
         ('seen', 'settling', 'ready', 'ignored', 'blocked', 'incomplete', 'root_absent')",
    )
    .bind(path)
    .fetch_optional(&mut *connection)
    .await
    .map_err(failed)?;
    if let Some(input) = waiting {
        turn(connection, input, change.state, change.reason.as_deref(), at).await?;
        remember(connection, input, change.fingerprint).await?;
        return Ok(input);
    }
    // Another version stands there now.
    sqlx::query("UPDATE inputs SET kept = 0 WHERE path = ?1 AND kept")
        .bind(path)
        .execute(&mut *connection)
        .await
        .map_err(failed)?;
    let input: InputId = sqlx::query_scalar(
        "INSERT INTO inputs (path, size, mtime_ns, inode, device, state, reason, first_seen, changed_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8) RETURNING id",
    )
    .bind(path)
    .bind(size)
    .bind(mtime_ns)
    .bind(inode)
    .bind(device)
    .bind(change.state.as_str())
    .bind(change.reason.as_deref())
    .bind(micros(at))
    .fetch_one(&mut *connection)
    .await
    .map_err(failed)?;
    note(connection, input, None, change.state, change.reason.as_deref(), at).await?;
    Ok(input)
}

/// Keeps which version of the file the row is about.
pub(in crate::store) async fn remember(
    connection: &mut SqliteConnection,
    input: InputId,
    version: Fingerprint,
) -> Result<()> {
    let [size, mtime_ns, inode, device] = numbers(version);
    sqlx::query("UPDATE inputs SET size = ?2, mtime_ns = ?3, inode = ?4, device = ?5 WHERE id = ?1")
        .bind(input)
        .bind(size)
        .bind(mtime_ns)
        .bind(inode)
        .bind(device)
        .execute(connection)
        .await
        .map(drop)
        .map_err(|error| explain("record a change of an input", error))
}

/// Turns an input to a state and gives the one before. That it is there already, for the same reason, is no change.
pub(in crate::store) async fn turn(
    connection: &mut SqliteConnection,
    input: InputId,
    to: InputState,
    reason: Option<&str>,
    at: Timestamp,
) -> Result<InputState> {
    let failed = |error| explain("record a change of an input", error);
    let before: (String, Option<String>) = sqlx::query_as("SELECT state, reason FROM inputs WHERE id = ?1")
        .bind(input)
        .fetch_one(&mut *connection)
        .await
        .map_err(failed)?;
    let from = InputState::parse(&before.0).ok_or_else(|| unreadable("an input's state"))?;
    if from == to && before.1.as_deref() == reason {
        return Ok(from);
    }
    sqlx::query("UPDATE inputs SET state = ?2, reason = ?3, changed_at = ?4 WHERE id = ?1")
        .bind(input)
        .bind(to.as_str())
        .bind(reason)
        .bind(micros(at))
        .execute(&mut *connection)
        .await
        .map_err(failed)?;
    note(connection, input, Some(from), to, reason, at).await?;
    Ok(from)
}

async fn note(
    connection: &mut SqliteConnection,
    input: InputId,
    from: Option<InputState>,
    to: InputState,
    reason: Option<&str>,
    at: Timestamp,
) -> Result<()> {
    sqlx::query(
        "INSERT INTO input_changes (input, at, from_state, to_state, reason) VALUES (?1, ?2, ?3, ?4, ?5)",
    )
    .bind(input)
    .bind(micros(at))
    .bind(from.map(InputState::as_str))
    .bind(to.as_str())
    .bind(reason)
    .execute(connection)
    .await
    .map(drop)
    .map_err(|error| explain("record a change of an input", error))
}

pub(in crate::store) fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// SQLite's integers have a sign; the bits come back as they went in.
fn numbers(fingerprint: Fingerprint) -> [i64; 4] {
    [
        fingerprint.size.cast_signed(),
        fingerprint.mtime_ns,
        fingerprint.inode.cast_signed(),
        fingerprint.device.cast_signed(),
    ]
}

pub(in crate::store) fn decode(row: &SqliteRow) -> Result<InputRow> {
    let failed = |error| explain("read the ledger", error);
    let number = |column: &str| row.try_get::<i64, _>(column).map_err(failed);
    let path = |column: &str| -> Result<Option<PathBuf>> {
        let bytes: Option<Vec<u8>> = row.try_get(column).map_err(failed)?;
        Ok(bytes.map(|bytes| PathBuf::from(OsString::from_vec(bytes))))
    };
    let digest: Option<&str> = row.try_get("digest").map_err(failed)?;
    let id = number("id")?;
    let role: Option<&str> = row.try_get("role").map_err(failed)?;
    let then = |column: &str| -> Result<Then> {
        let bytes: Option<&[u8]> = row.try_get(column).map_err(failed)?;
        Then::decode(bytes).ok_or_else(|| unreadable("where a file goes"))
    };
    Ok(InputRow {
        id,
        path: RawPath::new(path("path")?.unwrap_or_default()),
        fingerprint: Fingerprint {
            size: number("size")?.cast_unsigned(),
            mtime_ns: number("mtime_ns")?,
            inode: number("inode")?.cast_unsigned(),
            device: number("device")?.cast_unsigned(),
        },
        digest: digest.and_then(Digest::parse),
        state: state(row, "state")?.ok_or_else(|| unreadable("an input's state"))?,
        reason: row.try_get("reason").map_err(failed)?,
        workflows: json(row.try_get("workflows").map_err(failed)?, "an input's workflows")?,
        first_seen: instant(row, "first_seen")?,
        changed_at: instant(row, "changed_at")?,
        claimed_path: path("claimed_path")?,
        final_path: path("final_path")?,
        parcel: row.try_get::<Option<InputId>, _>("parcel").map_err(failed)?.unwrap_or(id),
        role: role.and_then(Role::parse),
        kept: row.try_get("kept").map_err(failed)?,
        on_success: then("on_success")?,
        on_failure: then("on_failure")?,
    })
}

fn change(row: &SqliteRow) -> Result<Change> {
    let failed = |error| explain("read the ledger", error);
    Ok(Change {
        input: row.try_get("input").map_err(failed)?,
        at: instant(row, "at")?,
        from: state(row, "from_state")?,
        to: state(row, "to_state")?.ok_or_else(|| unreadable("an input's state"))?,
        reason: row.try_get("reason").map_err(failed)?,
    })
}

fn state(row: &SqliteRow, column: &str) -> Result<Option<InputState>> {
    let word: Option<&str> = row.try_get(column).map_err(|error| explain("read the ledger", error))?;
    word.map(|word| InputState::parse(word).ok_or_else(|| unreadable("an input's state"))).transpose()
}
