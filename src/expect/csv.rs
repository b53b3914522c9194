//! `expect.csv`: a table with a header row, read row by row.

mod cells;
mod header;
mod lines;
mod quotes;
mod unique;

use std::fmt;

use csv::{ByteRecord, ReaderBuilder};

use crate::event::finding::Finding;
use crate::expect::csv::cells::Cells;
use crate::expect::csv::header::Header;
use crate::expect::csv::lines::Lines;
use crate::expect::csv::unique::Unique;
use crate::expect::read::{self, head, kind, open};
use crate::expect::report::Report;
use crate::workflow::expectation::Csv;
use crate::workflow::view::Artifact;

/// Everything wrong with a table.
pub(super) fn check(expect: &Csv, artifact: &Artifact) -> Vec<Finding> {
    let mut report = Report::new(artifact);
    table(expect, artifact, &mut report);
    report.finish()
}

/// A row as people count: the header is none, and a line is a line of the file.
#[derive(Debug, Clone, Copy)]
struct Place {
    row: u64,
    line: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "row {} (line {})", self.row, self.line)
    }
}

fn table(expect: &Csv, artifact: &Artifact, report: &mut Report<'_>) {
    let Some(head) = head(artifact, report) else {
        return;
    };
    if head.contains(&0) {
        report.add("csv.binary", "the file is not a text table", |finding| {
            finding.expected("CSV in UTF-8").found(kind(&head))
        });
        return;
    }
    let (Some(file), Some(counted)) = (open(artifact, report), open(artifact, report)) else {
        return;
    };
    let mut lines = Lines::new(counted);
    // Rows of another length are reported, not refused: one of them must not hide what is wrong with the rest.
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(file);
    let mut record = ByteRecord::new();
    match reader.read_byte_record(&mut record) {
        Ok(true) => {}
        Ok(false) => {
            report.add("csv.empty", "the table is empty", |finding| {
                finding
                    .expected("a header row")
                    .found(format!("{} bytes without a row", artifact.size))
            });
            return;
        }
        Err(error) => return unreadable(&error, report),
    }
    let header = Header::read(&record, expect, report);
    let cells = Cells::new(expect, &header, report);
    let mut unique = Unique::new(&expect.unique, &header);
    let mut rows = 0;
    let mut last = 0;
    loop {
        match reader.read_byte_record(&mut record) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => return unreadable(&error, report),
        }
        rows += 1;
        last = record.position().map_or(last, csv::Position::byte);
        let place = match lines.at(last) {
            Ok(line) => Place { row: rows, line },
            Err(error) => return read::unreadable(&error, report),
        };
        header.compare(&record, place, report);
        cells.check(&record, place, report);
        unique.check(&record, place, report);
    }
    count(expect, rows, report);
    quotes::closed(artifact, last, rows, report);
}

fn count(expect: &Csv, rows: u64, report: &mut Report<'_>) {
    let found = format!("{rows} {}", if rows == 1 { "row" } else { "rows" });
    if let Some(least) = expect.min_rows.filter(|least| rows < *least) {
        report.add("csv.rows", "the table has too few rows", |finding| {
            finding
                .expected(format!("at least {least}, the header not counted"))
                .found(&found)
        });
    }
    if let Some(most) = expect.max_rows.filter(|most| rows > *most) {
        report.add("csv.rows", "the table has too many rows", |finding| {
            finding
                .expected(format!("at most {most}, the header not counted"))
                .found(&found)
        });
    }
}

fn unreadable(error: &csv::Error, report: &mut Report<'_>) {
    report.add(
        "output.unreadable",
        format!("the file cannot be read: {error}"),
        |finding| finding,
    );
}
