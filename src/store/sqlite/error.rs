//! What the database says, as something a person can act on.

use crate::diagnostic::Diagnostic;

/// The primary result codes of SQLite that have an answer of their own.
mod sqlite {
    pub(in crate::store) const BUSY: i32 = 5;
    pub(in crate::store) const READONLY: i32 = 8;
    pub(in crate::store) const IOERR: i32 = 10;
    pub(in crate::store) const CORRUPT: i32 = 11;
    pub(in crate::store) const FULL: i32 = 13;
    pub(in crate::store) const CANTOPEN: i32 = 14;
    pub(in crate::store) const NOTADB: i32 = 26;
}

/// Turns an error of the database into a diagnostic; `act` completes "cannot ...".
pub(in crate::store) fn explain(act: &str, error: sqlx::Error) -> Diagnostic {
    let (code, help) = match primary(&error) {
        Some(sqlite::FULL) => {
            ("store::disk_full", "the disk is full; free some space, nothing that was recorded is lost")
        }
        Some(sqlite::CORRUPT | sqlite::NOTADB) => (
            "store::corrupt",
            "the database .tidemill/tidemill.db is damaged and was left as it is; put back a copy of it, or save what can \
             be read with `tidemill salvage`, which says how to begin anew",
        ),
        Some(sqlite::BUSY) => (
            "store::busy",
            "another process holds the database for long; see `tidemill doctor`, or try again",
        ),
        Some(sqlite::READONLY | sqlite::CANTOPEN) => (
            "store::unwritable",
            "the folder .tidemill and the files in it must be writable for this user, on a disk that is not read-only",
        ),
        Some(sqlite::IOERR) => {
            ("store::io", "the disk did not do what it was asked; look at its space and its health (`dmesg`)")
        }
        _ => ("store::failed", "this should not happen; the cause above says what the database refused"),
    };
    Diagnostic::new(code, format!("cannot {act}")).help(help).cause(error)
}

/// Whether another connection was in the way.
pub(in crate::store) fn is_busy(error: &sqlx::Error) -> bool {
    primary(error) == Some(sqlite::BUSY)
}

/// A row that does not hold what this version wrote.
pub(in crate::store) fn unreadable(what: &str) -> Diagnostic {
    Diagnostic::new("store::corrupt", format!("the database holds {what} that cannot be read"))
        .help("it was written by another program or is damaged; nothing was changed")
}

fn primary(error: &sqlx::Error) -> Option<i32> {
    let extended: i32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(extended & 0xff)
}
