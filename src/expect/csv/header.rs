//! The header row: which columns there are, and which are missing.

use std::collections::{BTreeMap, BTreeSet};

use csv::ByteRecord;

use crate::diagnostic::nearest;
use crate::expect::csv::Place;
use crate::expect::report::{Report, listed};
use crate::workflow::expectation::Csv;

/// The columns by name.
#[derive(Debug)]
pub(super) struct Header {
    names: Vec<String>,
    places: BTreeMap<String, usize>,
}

impl Header {
    /// Reads the header; adds doubled and missing columns.
    pub fn read(record: &ByteRecord, expect: &Csv, report: &mut Report<'_>) -> Self {
        let mut header = Self {
            names: Vec::new(),
            places: BTreeMap::new(),
        };
        for (index, field) in record.iter().enumerate() {
            // Spreadsheet programs put a byte order mark before the first name.
            let field = match index {
                0 => field.strip_prefix(b"\xef\xbb\xbf").unwrap_or(field),
                _ => field,
            };
            let name = String::from_utf8_lossy(field).into_owned();
            if std::str::from_utf8(field).is_err() {
                report.add("csv.encoding", "a column's name is not UTF-8", |finding| {
                    finding
                        .place(format!("header, column {}", index + 1))
                        .expected("UTF-8")
                        .found(&name)
                });
            }
            header.names.push(name.clone());
            if header.places.insert(name.clone(), index).is_some() {
                report.add(
                    "csv.header",
                    format!("the column `{name}` is there twice"),
                    |finding| {
                        finding
                            .place("header")
                            .expected("every column once")
                            .found(header.names.join(","))
                    },
                );
            }
        }
        header.missing(expect, report);
        header
    }

    /// Where a column stands.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    /// The names of all columns, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Adds a row that has another number of cells.
    pub fn compare(&self, record: &ByteRecord, place: Place, report: &mut Report<'_>) {
        if record.len() != self.names.len() {
            report.add(
                "csv.ragged",
                "the row has another number of cells than the header",
                |finding| {
                    finding
                        .place(place.to_string())
                        .expected(format!("{} cells", self.names.len()))
                        .found(format!("{} cells", record.len()))
                },
            );
        }
    }

    /// Every column that a check speaks of must be there.
    fn missing(&self, expect: &Csv, report: &mut Report<'_>) {
        let lists = [&expect.columns, &expect.unique, &expect.not_null];
        let wanted: BTreeSet<&str> = lists
            .into_iter()
            .flatten()
            .chain(expect.types.keys())
            .chain(expect.ranges.keys())
            .chain(expect.enums.keys())
            .chain(expect.patterns.keys())
            .map(String::as_str)
            .collect();
        for name in wanted.into_iter().filter(|name| self.place(name).is_none()) {
            let guess = nearest(name, self.names());
            let hint = match (guess, self.other_separator()) {
                (_, Some(separator)) => {
                    format!("; the cells seem to be separated by {separator}, not by commas")
                }
                (Some(guess), None) => format!("; did you mean `{guess}`?"),
                (None, None) => String::new(),
            };
            report.add(
                "csv.columns",
                format!("the column `{name}` is missing{hint}"),
                |finding| {
                    finding
                        .place("header")
                        .expected(format!("a column `{name}`"))
                        .found(listed(self.names()))
                },
            );
        }
    }

    /// A header in one piece shows what separates it.
    fn other_separator(&self) -> Option<&'static str> {
        let [only] = self.names.as_slice() else {
            return None;
        };
        [(';', "semicolons"), ('\t', "tabs"), ('|', "bars")]
            .into_iter()
            .find(|(separator, _)| only.contains(*separator))
            .map(|(_, name)| name)
    }
}
