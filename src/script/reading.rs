//! Reading a run's files from Lua: row by row where they may be large, with a bound where they are taken whole.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use mlua::{Function, Lua, LuaSerdeExt as _, Value};

use super::raised::Raised;
use super::view::check_time;

/// A file taken whole must fit in the memory of the Lua state several times over.
const WHOLE: u64 = 8 << 20;
/// A line or a row longer than this is no text for people.
const LONGEST_LINE: u64 = 1 << 20;
/// More columns than any table for people has.
const MOST_COLUMNS: usize = 10_000;
/// How often the time is looked at, in rows.
const STRIDE: u64 = 256;

/// An iterator over the rows of a CSV, as tables keyed by the header.
///
/// Problems are raised by the loop: `nil, why` in a `for` would only say that nil cannot be called.
pub(super) fn csv(lua: &Lua, path: &Path, shown: String) -> mlua::Result<Function> {
    let broken = |why: String| Raised::misuse(format!("`{shown}` cannot be read as CSV: {why}")).word("csv");
    let file = File::open(path).map_err(|error| broken(error.to_string()))?;
    let since = Arc::new(AtomicU64::new(0));
    let file = Metered { file, since: Arc::clone(&since) };
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(file);
    let mut header: Vec<String> = Vec::new();
    for name in reader.headers().map_err(|error| broken(plain(&error)))? {
        header.push(name.trim_start_matches('\u{feff}').trim().to_owned());
    }
    if header.len() > MOST_COLUMNS {
        return Err(broken(format!("it has more than {MOST_COLUMNS} columns")).into());
    }
    if let Some(twice) = header.iter().enumerate().find(|(index, name)| header[..*index].contains(name)) {
        return Err(broken(format!("the column `{}` occurs twice", super::value::shorten(twice.1))).into());
    }
    let state = Mutex::new((reader, csv::StringRecord::new(), 0_u64));
    lua.create_function(move |lua, ()| {
        let mut state = state.lock().map_err(|_| mlua::Error::runtime("the reader is broken"))?;
        let (reader, record, rows) = &mut *state;
        *rows += 1;
        if rows.is_multiple_of(STRIDE) {
            check_time(lua)?;
        }
        let broken = |why: String| {
            Raised::misuse(format!("`{shown}` cannot be read as CSV: {why}"))
                .help("the expectations of an output are checked before `validate`; an input may be anything")
        };
        since.store(0, Ordering::Relaxed);
        let more = reader.read_record(record).map_err(|error| broken(plain(&error)))?;
        if !more {
            return Ok(Value::Nil);
        }
        if record.len() > header.len() {
            let why = format!("row {rows} has {} cells and the header {}", record.len(), header.len());
            return Err(broken(why).into());
        }
        let row = lua.create_table_with_capacity(0, header.len())?;
        for (name, cell) in header.iter().zip(record.iter()) {
            row.raw_set(name.as_str(), cell)?;
        }
        Ok(Value::Table(row))
    })
}

/// A file that gives no row more bytes than a row may have: a quote that is never closed would take them all.
struct Metered {
    file: File,
    /// Bytes read since the last row began.
    since: Arc<AtomicU64>,
}

impl std::io::Read for Metered {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.file.read(buffer)?;
        let since = self.since.fetch_add(count as u64, Ordering::Relaxed);
        if since > LONGEST_LINE {
            return Err(std::io::Error::other("a row is longer than 1 MiB; is a quote not closed?"));
        }
        Ok(count)
    }
}

fn plain(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::Utf8 { pos, .. } => match pos {
            Some(position) => format!("line {} is not UTF-8", position.line()),
            None => "it is not UTF-8".into(),
        },
        csv::ErrorKind::Io(error) => error.to_string(),
        _ => error.to_string(),
    }
}

/// An iterator over lines, without their ends.
pub(super) fn lines(lua: &Lua, path: &Path, shown: String) -> mlua::Result<Function> {
    let file =
        File::open(path).map_err(|error| Raised::misuse(format!("`{shown}` cannot be read: {error}")))?;
    let state = Mutex::new((BufReader::new(file), 0_u64));
    lua.create_function(move |lua, ()| {
        let mut state = state.lock().map_err(|_| mlua::Error::runtime("the reader is broken"))?;
        let (reader, count) = &mut *state;
        *count += 1;
        if count.is_multiple_of(STRIDE) {
            check_time(lua)?;
        }
        let mut line = Vec::new();
        let read = reader.by_ref().take(LONGEST_LINE + 1).read_until(b'\n', &mut line);
        let length = read.map_err(|error| Raised::misuse(format!("`{shown}` cannot be read: {error}")))?;
        if length == 0 {
            return Ok(Value::Nil);
        }
        if line.len() as u64 > LONGEST_LINE {
            return Err(Raised::misuse(format!("line {count} of `{shown}` is longer than 1 MiB")).into());
        }
        while matches!(line.last(), Some(b'\n' | b'\r')) {
            line.pop();
        }
        Ok(Value::String(lua.create_string(&line)?))
    })
}

/// The whole text; the error is a sentence.
pub(super) fn text(path: &Path, shown: &str) -> Result<String, String> {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(path)?.take(WHOLE + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|error| format!("`{shown}` cannot be read: {error}"))?;
    if bytes.len() as u64 > WHOLE {
        return Err(format!("`{shown}` is larger than 8 MiB; read it with `:csv()` or `:lines()`"));
    }
    String::from_utf8(bytes).map_err(|_| format!("`{shown}` is not UTF-8 text"))
}

/// The decoded document; the error is a sentence.
pub(super) fn json(lua: &Lua, path: &Path, shown: &str) -> Result<Value, String> {
    let text = text(path, shown)?;
    let json: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| format!("`{shown}` is not JSON: {error}"))?;
    lua.to_value(&json).map_err(|error| format!("`{shown}` is too large: {error}"))
}
