//! Opening the database: settings, versions, and what is refused.

use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};

use crate::diagnostic::{Diagnostic, Result};
use crate::store::sqlite::error::{explain, is_busy};

/// The schema's versions, oldest first. A released one never changes; a change is a new one.
const VERSIONS: [&str; 7] = [
    include_str!("../schema/1.sql"),
    include_str!("../schema/2.sql"),
    include_str!("../schema/3.sql"),
    include_str!("../schema/4.sql"),
    include_str!("../schema/5.sql"),
    include_str!("../schema/6.sql"),
    include_str!("../schema/7.sql"),
];

/// A writer waits this long for another process's transaction; ours take milliseconds.
const BUSY: Duration = Duration::from_secs(10);

/// Lists and logs are read beside each other; more connections only cost memory.
const READERS: u32 = 4;

/// Opens `file`, makes it when it is missing and brings it to the newest version.
///
/// Gives the one connection that writes and a pool for reading.
pub(in crate::store) async fn open(file: &Path) -> Result<(SqliteConnection, SqlitePool)> {
    refuse_to_forget(file)?;
    let options = options(file);
    let act = format!("open {}", file.display());
    let mut writer =
        connect(&options.clone().create_if_missing(true)).await.map_err(|error| explain(&act, error))?;
    migrate(&mut writer, file).await?;
    let readers = SqlitePoolOptions::new()
        .max_connections(READERS)
        .test_before_acquire(false)
        .connect_lazy_with(options.pragma("query_only", "ON"));
    Ok((writer, readers))
}

/// A database that is gone while its files are there was deleted or lost: an empty one in its place would make nobody
/// look for it.
fn refuse_to_forget(file: &Path) -> Result<()> {
    let state = file.parent().unwrap_or(Path::new("."));
    let holds = |name: &&str| state.join(name).read_dir().is_ok_and(|mut entries| entries.next().is_some());
    let Some(name) = ["claimed", "runs"].into_iter().find(holds).filter(|_| !holds_anything(file)) else {
        return Ok(());
    };
    let message =
        format!("{} is gone, and files it knew of are in {}", file.display(), state.join(name).display());
    Err(Diagnostic::new("store::missing", message).help(
        "put back a copy of it; without one, take out of `claimed` what you need, and move the folder away to start \
         with an empty history",
    ))
}

/// Whether there is more than the name of a database: SQLite takes an empty file for a new one.
fn holds_anything(file: &Path) -> bool {
    file.metadata().is_ok_and(|data| data.len() > 0)
}

/// The connection that writes, once more.
pub(in crate::store) async fn writer(file: &Path) -> Result<SqliteConnection, sqlx::Error> {
    connect(&options(file)).await
}

fn options(file: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(file)
        .journal_mode(SqliteJournalMode::Wal)
        // A run row that was reported must be there after a power cut.
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(BUSY)
        .foreign_keys(true)
        .disable_statement_logging()
}

/// Two processes that open a new database at once get in each other's way while one turns the journal to WAL; SQLite
/// does not wait there, so this does.
async fn connect(options: &SqliteConnectOptions) -> Result<SqliteConnection, sqlx::Error> {
    const TRIES: u32 = 100;
    const PAUSE: Duration = Duration::from_millis(20);
    let mut tries = 1;
    loop {
        match options.connect().await {
            Err(error) if is_busy(&error) && tries < TRIES => tries += 1,
            done => return done,
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn migrate(writer: &mut SqliteConnection, file: &Path) -> Result<()> {
    let shown = file.display();
    let failed = |error| explain(&format!("prepare {shown}"), error);
    let newest = i64::try_from(VERSIONS.len()).unwrap_or(i64::MAX);
    if version(writer).await.map_err(failed)? == newest {
        return Ok(());
    }
    let mut transaction = writer.begin_with("BEGIN IMMEDIATE").await.map_err(failed)?;
    // Asked again inside: another process may have done it in between.
    let found = version(&mut transaction).await.map_err(failed)?;
    if found > newest || found < 0 {
        return Err(Diagnostic::new(
            "store::newer",
            format!("{shown} was written by a newer tidemill (format {found}, this one knows {newest})"),
        )
        .help("use that version here, or move the folder .tidemill away to start with an empty history"));
    }
    if found == 0 && tables(&mut transaction).await.map_err(failed)? > 0 {
        return Err(Diagnostic::new("store::foreign", format!("{shown} is not a database of tidemill"))
            .help("it was left as it is; move it away and start again"));
    }
    for statements in VERSIONS.iter().skip(usize::try_from(found).unwrap_or_default()) {
        sqlx::raw_sql(*statements).execute(&mut *transaction).await.map_err(failed)?;
    }
    // A pragma takes no parameters.
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!("PRAGMA user_version = {newest}")))
        .execute(&mut *transaction)
        .await
        .map_err(failed)?;
    transaction.commit().await.map_err(failed)
}

async fn version(connection: &mut SqliteConnection) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar("PRAGMA user_version").fetch_one(connection).await
}

async fn tables(connection: &mut SqliteConnection) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar("SELECT count(*) FROM sqlite_schema").fetch_one(connection).await
}
