//! The copy of a damaged database that is worked on, opened whatever of its first page was lost.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::Path;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};
use tempfile::TempDir;

use super::{journal, pages, unwritable};
use crate::diagnostic::Result;
use crate::store::sqlite::database;

/// What SQLite begins every database with.
pub(super) const HEADER: usize = 100;

/// Bytes of a page; this version has always written such.
pub(super) const BYTES: usize = 4096;

/// Where the header says how many pages there are.
const COUNT: std::ops::Range<usize> = 28..32;

/// The copy's name.
const NAME: &str = "copy.db";

/// What had to be mended before it could be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mended {
    Nothing,
    Header,
    FirstPage,
    Beyond,
}

/// A copy with its journal, in a folder of its own.
pub(super) struct Copy {
    folder: TempDir,
    pub(super) connection: SqliteConnection,
    pub(super) mended: Mended,
    /// Pages it should have.
    pub(super) pages: u64,
    /// Pages it has.
    present: u64,
}

impl Copy {
    /// Copies `file` and its journal into a folder in `into`, and mends the copy as far as it must be to be read.
    pub(super) async fn make(file: &Path, into: &Path) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix(".copy-")
            .tempdir_in(into)
            .map_err(|error| unwritable(into, error))?;
        let copy = folder.path().join(NAME);
        let size = clone(file, &copy).map_err(|error| unwritable(&copy, error))?;
        if journal(file).is_file() {
            clone(&journal(file), &journal(&copy)).map_err(|error| unwritable(&copy, error))?;
        }
        let present = size.div_ceil(u64::try_from(BYTES).unwrap_or(u64::MAX));
        let claimed = claimed_pages(&copy).unwrap_or(present);
        let (connection, mended) = open(&copy, folder.path(), present).await?;
        Ok(Self { folder, connection, mended, pages: present.max(claimed), present })
    }

    /// Its tables, but for SQLite's own.
    pub(super) async fn tables(&mut self) -> Vec<String> {
        let names: Vec<String> = sqlx::query_scalar(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name",
        )
        .fetch_all(&mut self.connection)
        .await
        .unwrap_or_default();
        // They become names of files.
        let plain = |name: &String| name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        names.into_iter().filter(plain).collect()
    }

    /// Pages that are missing, or that are none of the tables and indexes that lead to them.
    pub(super) async fn lost_pages(&mut self) -> u64 {
        let roots: Vec<u32> = sqlx::query_scalar("SELECT rootpage FROM sqlite_schema WHERE rootpage > 0")
            .fetch_all(&mut self.connection)
            .await
            .unwrap_or_default();
        // What the journal holds goes into the file that is looked at.
        let _ = sqlx::raw_sql("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut self.connection).await;
        let damaged = pages::damaged(&self.folder.path().join(NAME), roots.into_iter().chain([1]));
        let damaged = damaged.map_or(0, |damaged| damaged.len() as u64);
        let mended = u64::from(self.mended != Mended::Nothing);
        self.pages.saturating_sub(self.present) + damaged + mended
    }

    /// Removes it.
    pub(super) async fn remove(self) {
        // Nothing depends on it any more.
        let _ = self.connection.close().await;
        let _ = self.folder.close();
    }
}

/// Copies the bytes alone: the copy is ours to write to, whatever the original is.
fn clone(from: &Path, to: &Path) -> std::io::Result<u64> {
    std::io::copy(&mut File::open(from)?, &mut File::create(to)?)
}

/// How many pages its header says there are, when it has one.
fn claimed_pages(copy: &Path) -> Option<u64> {
    let mut header = [0; HEADER];
    File::open(copy).ok()?.read_exact(&mut header).ok()?;
    let count = <[u8; 4]>::try_from(&header[COUNT]).ok()?;
    header.starts_with(b"SQLite format 3\0").then(|| u64::from(u32::from_be_bytes(count)))
}

/// Opens the copy: as it is, with a header, with a first page; else an empty database in its place.
async fn open(copy: &Path, folder: &Path, present: u64) -> Result<(SqliteConnection, Mended)> {
    if let Some(connection) = readable(copy).await {
        return Ok((connection, Mended::Nothing));
    }
    let fresh = folder.join("fresh.db");
    let (writer, readers) = database::open(&fresh).await?;
    readers.close().await;
    // What its journal holds goes into it.
    let _ = writer.close().await;
    for (length, mended) in [(HEADER, Mended::Header), (BYTES, Mended::FirstPage)] {
        graft(&fresh, copy, length, present).map_err(|error| unwritable(copy, error))?;
        if let Some(connection) = readable(copy).await {
            return Ok((connection, mended));
        }
    }
    let connection = connect(&fresh).await;
    connection
        .map(|connection| (connection, Mended::Beyond))
        .map_err(|error| unwritable(&fresh, std::io::Error::other(error.to_string())))
}

/// Puts the beginning of a new database in place of that of the copy, which has so many pages.
fn graft(fresh: &Path, copy: &Path, length: usize, pages: u64) -> std::io::Result<()> {
    let mut start = vec![0; length];
    File::open(fresh)?.read_exact(&mut start)?;
    start[COUNT].copy_from_slice(&u32::try_from(pages).unwrap_or(u32::MAX).to_be_bytes());
    // No page is known to be free: those that are would be written to, and this is only read.
    start[32..40].fill(0);
    OpenOptions::new().write(true).open(copy)?.write_all(&start)
}

/// A connection that could read what tables there are.
async fn readable(copy: &Path) -> Option<SqliteConnection> {
    let mut connection = connect(copy).await.ok()?;
    let tables: Result<i64, sqlx::Error> =
        sqlx::query_scalar("SELECT count(*) FROM sqlite_schema WHERE type = 'table'")
            .fetch_one(&mut connection)
            .await;
    if tables.is_ok_and(|tables| tables > 0) {
        return Some(connection);
    }
    let _ = connection.close().await;
    None
}

async fn connect(file: &Path) -> Result<SqliteConnection, sqlx::Error> {
    SqliteConnectOptions::new()
        .filename(file)
        .journal_mode(SqliteJournalMode::Wal)
        .pragma("cell_size_check", "ON")
        .disable_statement_logging()
        .connect()
        .await
}
