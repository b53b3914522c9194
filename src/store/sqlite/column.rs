//! Columns of the database as our types, and back.

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::Digest;
use crate::store::sqlite::error::{explain, unreadable};

/// A time as the database keeps it: to the microsecond.
pub(in crate::store) fn micros(at: Timestamp) -> i64 {
    at.as_microsecond()
}

/// The same time after a journey through the database.
pub(in crate::store) fn rounded(at: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(at.as_microsecond()).unwrap_or(at)
}

/// A column with a time.
pub(in crate::store) fn instant(row: &SqliteRow, column: &str) -> Result<Timestamp> {
    moment(row, column)?.ok_or_else(|| unreadable("a missing time"))
}

/// A column with a time or nothing.
pub(in crate::store) fn moment(row: &SqliteRow, column: &str) -> Result<Option<Timestamp>> {
    let micros: Option<i64> = row.try_get(column).map_err(|error| explain("read a time", error))?;
    micros.map(|micros| Timestamp::from_microsecond(micros).map_err(|_| unreadable("a time"))).transpose()
}

/// A column with a hash.
pub(in crate::store) fn digest(row: &SqliteRow, column: &str) -> Result<Digest> {
    let text: &str = row.try_get(column).map_err(|error| explain("read a hash", error))?;
    Digest::parse(text).ok_or_else(|| unreadable("a hash"))
}

/// JSON of a column as a value.
pub(in crate::store) fn json<T: DeserializeOwned>(text: &str, what: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| unreadable(what).cause(error))
}

/// A value as JSON for a column.
pub(in crate::store) fn to_json<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| Diagnostic::new("store::failed", "cannot write a value as JSON").cause(error))
}
