//! What the analyst found, read back from the published table, and how it compares with what is known.

use std::io::Read;

use jiff::Unit;
use jiff::civil::DateTime;

use crate::cli::demo::readings::{self, Abnormal};
use crate::diagnostic::{Diagnostic, Result};

/// Rows further apart than this belong to different events.
const APART_HOURS: f64 = 14.0;

/// An event of the published table.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Its first row's time.
    pub first: DateTime,
    /// Its last row's time.
    pub last: DateTime,
    /// Its rows.
    pub hours: usize,
    /// What the analyst calls it; empty when the table has no `kind` column.
    pub kind: String,
    /// kWh above (or below) the expected use, when the table has a `difference_kwh` column.
    pub difference: Option<f64>,
}

/// How what was found compares with what is known.
#[derive(Debug, PartialEq)]
pub struct Comparison<'a> {
    /// The known events, each with whether a found one overlaps it.
    pub known: Vec<(Abnormal, bool)>,
    /// Found events that overlap no known one.
    pub others: Vec<&'a Found>,
}

/// Reads the events of a published `anomalies.csv`. A model is free in the order of columns and in further ones.
pub fn read(table: impl Read) -> Result<Vec<Found>> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(table);
    let headers = reader.headers().map_err(unreadable)?.clone();
    let column = |name: &str| headers.iter().position(|header| header == name);
    let timestamp = column("timestamp")
        .ok_or_else(|| Diagnostic::new("demo::table", "anomalies.csv has no `timestamp`"))?;
    let (kind, difference) = (column("kind"), column("difference_kwh"));
    let mut rows = Vec::new();
    for record in reader.into_records() {
        let record = record.map_err(unreadable)?;
        let Some(time) = record.get(timestamp).and_then(time) else {
            continue;
        };
        rows.push(Found {
            first: time,
            last: time,
            hours: 1,
            kind: kind.and_then(|at| record.get(at)).unwrap_or_default().to_owned(),
            difference: difference.and_then(|at| record.get(at)?.parse().ok()),
        });
    }
    rows.sort_by_key(|row| row.first);
    Ok(rows.into_iter().fold(Vec::new(), join))
}

/// Compares what was found with what is known.
pub fn compare<'a>(found: &'a [Found], known: &[Abnormal]) -> Comparison<'a> {
    let overlaps = |found: &Found, known: &Abnormal| {
        let (first, last) = (readings::time(known.start), readings::time(known.start + known.hours - 1));
        found.first <= last && found.last >= first
    };
    Comparison {
        known: known.iter().map(|event| (*event, found.iter().any(|found| overlaps(found, event)))).collect(),
        others: found.iter().filter(|found| !known.iter().any(|event| overlaps(found, event))).collect(),
    }
}

fn join(mut events: Vec<Found>, row: Found) -> Vec<Found> {
    match events.last_mut() {
        Some(event) if hours_between(event.last, row.first) <= APART_HOURS && event.kind == row.kind => {
            event.last = row.first;
            event.hours += 1;
            event.difference = event.difference.zip(row.difference).map(|(sum, more)| sum + more);
        }
        _ => events.push(row),
    }
    events
}

fn hours_between(from: DateTime, to: DateTime) -> f64 {
    to.since(from).and_then(|span| span.total((Unit::Hour, from))).unwrap_or(f64::INFINITY)
}

fn time(text: &str) -> Option<DateTime> {
    text.trim().parse().ok()
}

fn unreadable(error: csv::Error) -> Diagnostic {
    Diagnostic::new("demo::table", "cannot read the published anomalies.csv").cause(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::demo::readings::ABNORMAL;

    const TABLE: &str = "timestamp,energy_kwh,difference_kwh,kind\n\
        2025-03-19 15:00:00,190,95.5,spike\n\
        2025-03-19 14:00:00,240,150,spike\n\
        2025-06-24 09:00:00,0.3,-70,outage\n\
        2025-06-24 11:00:00,0.3,-72,outage\n\
        2025-09-01 03:00:00,60,30,other\n";

    #[test]
    fn rows_become_events_in_the_order_of_time() {
        let found = read(TABLE.as_bytes()).unwrap();
        let shown: Vec<_> = found
            .iter()
            .map(|event| (event.first.to_string(), event.hours, event.difference, event.kind.as_str()))
            .collect();
        assert_eq!(
            shown,
            [
                ("2025-03-19T14:00:00".into(), 2, Some(245.5), "spike"),
                ("2025-06-24T09:00:00".into(), 2, Some(-142.0), "outage"),
                ("2025-09-01T03:00:00".into(), 1, Some(30.0), "other"),
            ]
        );
    }

    #[test]
    fn known_events_are_ticked_off_and_others_named() {
        let found = read(TABLE.as_bytes()).unwrap();
        let comparison = compare(&found, &ABNORMAL);
        let ticks: Vec<bool> = comparison.known.iter().map(|(_, found)| *found).collect();
        assert_eq!(ticks, [false, true, false, true, false, false]);
        assert_eq!(comparison.others, [&found[2]]);
    }

    #[test]
    fn a_table_of_two_columns_is_enough() {
        let found =
            read("energy_kwh,timestamp\n5,2025-01-01T00:00\n6,2025-01-03 00:00\n7,later\n".as_bytes())
                .unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].kind.as_str(), found[0].difference), ("", None));
    }

    #[test]
    fn a_table_without_times_is_a_clear_error() {
        assert_eq!(read("a,b\n1,2\n".as_bytes()).unwrap_err().code(), "demo::table");
    }
}
