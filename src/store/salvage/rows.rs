//! The rows of a table whose pages may be damaged: read in order, and from the next readable one where one is not.

use std::collections::VecDeque;

use futures_util::TryStreamExt as _;
use serde_json::{Map, Value};
use sqlx::sqlite::SqliteRow;
use sqlx::{Column as _, Row as _, SqliteConnection, TypeInfo as _, ValueRef as _};

use crate::event::input::RawPath;

/// Rows that are read at once.
const BATCH: i64 = 500;

/// A row as it is written.
#[derive(Debug)]
pub(super) struct Row {
    /// Column = value. Paths are as everywhere: text, or `hex:...` where they are not UTF-8.
    pub(super) values: Map<String, Value>,
}

/// Reads one table.
pub(super) struct Reader<'a> {
    connection: &'a mut SqliteConnection,
    table: String,
    columns: Vec<Declared>,
    ready: VecDeque<Row>,
    /// The last row that was read or passed over.
    last: i64,
    gaps: bool,
    ended: bool,
}

/// A column as the table declares it.
struct Declared {
    name: String,
    kind: String,
    is_needed: bool,
}

impl<'a> Reader<'a> {
    pub(super) async fn new(connection: &'a mut SqliteConnection, table: &str) -> Self {
        let found: Vec<(String, String, bool)> =
            sqlx::query_as("SELECT name, type, \"notnull\" FROM pragma_table_info(?1)")
                .bind(table)
                .fetch_all(&mut *connection)
                .await
                .unwrap_or_default();
        let columns =
            found.into_iter().map(|(name, kind, is_needed)| Declared { name, kind, is_needed }).collect();
        Self {
            connection,
            table: table.to_owned(),
            columns,
            ready: VecDeque::new(),
            // Rows are numbered from 1.
            last: 0,
            gaps: false,
            ended: false,
        }
    }

    /// Whether something could not be read so far.
    pub(super) fn has_gaps(&self) -> bool {
        self.gaps
    }

    /// The next row that can be read.
    pub(super) async fn next(&mut self) -> Option<Row> {
        while self.ready.is_empty() && !self.ended {
            if !self.batch().await {
                self.gaps = true;
                self.pass_over().await;
            }
        }
        self.ready.pop_front()
    }

    /// Reads rows until a page cannot be read; gives whether all could.
    async fn batch(&mut self) -> bool {
        let sql = format!(
            "SELECT rowid AS \"rowid of it\", * FROM \"{}\" WHERE rowid > ?1 ORDER BY rowid LIMIT {BATCH}",
            self.table
        );
        let mut found = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(self.last).fetch(&mut *self.connection);
        let mut read = 0;
        loop {
            match found.try_next().await {
                Ok(Some(row)) => {
                    read += 1;
                    let Ok(id) = row.try_get::<i64, _>(0) else { return false };
                    // Rows in order are what tells that a page is one of this table.
                    if id <= self.last {
                        return false;
                    }
                    self.last = id;
                    match values(&row, &self.columns) {
                        Some(values) => self.ready.push_back(Row { values }),
                        None => self.gaps = true,
                    }
                }
                Ok(None) => {
                    self.ended = read < BATCH;
                    return true;
                }
                Err(_) => return false,
            }
        }
    }

    /// Goes on behind what cannot be read: first far enough, then back to the first row that can be.
    async fn pass_over(&mut self) {
        let mut bad = self.last;
        let mut step: i64 = 1;
        let mut good = loop {
            let Some(next) = bad.checked_add(step) else {
                self.ended = true;
                return;
            };
            match self.probe(next).await {
                Probe::Row => break next,
                Probe::End => {
                    // Nothing is known to be behind it: rows that were lost may have been the last.
                    self.ended = true;
                    return;
                }
                Probe::Unreadable => bad = next,
            }
            step = step.saturating_mul(2);
        };
        while good - bad > 1 {
            let middle = bad + (good - bad) / 2;
            match self.probe(middle).await {
                Probe::Row => good = middle,
                Probe::End | Probe::Unreadable => bad = middle,
            }
        }
        self.last = good;
    }

    /// Whether there is a row behind `id` that can be read.
    async fn probe(&mut self, id: i64) -> Probe {
        let sql = format!("SELECT rowid FROM \"{}\" WHERE rowid > ?1 ORDER BY rowid LIMIT 1", self.table);
        let found = sqlx::query_scalar::<_, i64>(sqlx::AssertSqlSafe(sql))
            .bind(id)
            .fetch_optional(&mut *self.connection)
            .await;
        match found {
            Ok(Some(found)) if found > id => Probe::Row,
            Ok(None) => Probe::End,
            Ok(Some(_)) | Err(_) => Probe::Unreadable,
        }
    }
}

enum Probe {
    Row,
    End,
    Unreadable,
}

/// The columns of a row, when they are what the table declares: a strict table holds nothing else.
fn values(row: &SqliteRow, columns: &[Declared]) -> Option<Map<String, Value>> {
    let mut values = Map::new();
    for (index, declared) in columns.iter().enumerate() {
        // The first one is the row's own number.
        let index = index + 1;
        let raw = row.try_get_raw(index).ok()?;
        let kind = raw.type_info().name().to_owned();
        if row.column(index).name() != declared.name
            || (raw.is_null() && declared.is_needed)
            || (!raw.is_null() && kind != declared.kind)
        {
            return None;
        }
        let value = match kind.as_str() {
            _ if raw.is_null() => Value::Null,
            "INTEGER" => row.try_get::<i64, _>(index).ok()?.into(),
            "REAL" => row.try_get::<f64, _>(index).ok()?.into(),
            "BLOB" => {
                use std::os::unix::ffi::OsStringExt as _;
                let bytes = row.try_get::<Vec<u8>, _>(index).ok()?;
                RawPath::new(std::ffi::OsString::from_vec(bytes)).encode().into()
            }
            _ => row.try_get::<String, _>(index).ok()?.into(),
        };
        values.insert(declared.name.clone(), value);
    }
    Some(values)
}
