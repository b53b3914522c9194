//! A quote that is never closed: the reader takes the rest of the file for one cell and says nothing.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};

use crate::expect::read::{open, unreadable};
use crate::expect::report::Report;
use crate::workflow::view::Artifact;

/// Adds when the last row, which begins at byte `start`, ends inside quotes.
pub(super) fn closed(artifact: &Artifact, start: u64, rows: u64, report: &mut Report<'_>) {
    let Some(file) = open(artifact, report) else {
        return;
    };
    match ends_inside(file, start) {
        Ok(false) => {}
        Ok(true) => report.add("csv.quotes", "a quote is opened and never closed", |finding| {
            let place = if rows == 0 {
                "header".to_owned()
            } else {
                format!("row {rows}, the last one that could be read")
            };
            finding
                .place(place)
                .expected("a closing `\"`")
                .found("the end of the file")
        }),
        Err(error) => unreadable(&error, report),
    }
}

/// Where the reading of a row stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    CellStart,
    Plain,
    Quoted,
    /// After a quote inside quotes: the end of them, or the first half of a doubled one.
    QuoteSeen,
}

fn ends_inside(mut file: File, start: u64) -> io::Result<bool> {
    file.seek(SeekFrom::Start(start))?;
    let mut reader = BufReader::new(file);
    let mut state = State::CellStart;
    loop {
        let bytes = reader.fill_buf()?;
        if bytes.is_empty() {
            return Ok(state == State::Quoted);
        }
        for byte in bytes {
            state = match (state, byte) {
                (State::Quoted, b'"') => State::QuoteSeen,
                (State::CellStart | State::QuoteSeen, b'"') | (State::Quoted, _) => State::Quoted,
                (_, b',' | b'\n' | b'\r') => State::CellStart,
                (_, _) => State::Plain,
            };
        }
        let read = bytes.len();
        reader.consume(read);
    }
}
