//! The checks on single cells: types, empty cells, ranges, words and patterns.

use csv::ByteRecord;
use regex::Regex;

use crate::expect::csv::Place;
use crate::expect::csv::header::Header;
use crate::expect::report::{Report, listed};
use crate::expect::value;
use crate::workflow::expectation::{ColumnType, Csv, Range};

/// What is wanted of the cells, column by column in the order of the header.
#[derive(Debug)]
pub(super) struct Cells<'e> {
    columns: Vec<Column<'e>>,
}

#[derive(Debug, Default)]
struct Column<'e> {
    name: String,
    kind: Option<ColumnType>,
    not_null: bool,
    range: Option<Range>,
    words: Option<&'e [String]>,
    pattern: Option<(&'e str, Regex)>,
}

impl<'e> Cells<'e> {
    /// Looks up the columns; a column that is missing was reported with the header.
    pub fn new(expect: &'e Csv, header: &Header, report: &mut Report<'_>) -> Self {
        let columns = header
            .names()
            .map(|name| Column {
                name: name.to_owned(),
                kind: expect.types.get(name).copied(),
                not_null: expect.not_null.iter().any(|column| column == name),
                range: expect.ranges.get(name).copied(),
                words: expect.enums.get(name).map(Vec::as_slice),
                pattern: expect.patterns.get(name).and_then(|text| anchored(text, report)),
            })
            .collect();
        Self { columns }
    }

    /// Checks a row. Cells that are not there were reported as a row of another length.
    pub fn check(&self, record: &ByteRecord, place: Place, report: &mut Report<'_>) {
        for (column, cell) in self.columns.iter().zip(record) {
            match std::str::from_utf8(cell) {
                Ok(text) => column.check(text, place, report),
                Err(_) => report.add("csv.encoding", "a cell is not UTF-8", |finding| {
                    finding
                        .place(column.place(place))
                        .expected("UTF-8")
                        .found(String::from_utf8_lossy(cell))
                }),
            }
        }
    }
}

/// The pattern for a whole cell.
fn anchored<'e>(text: &'e str, report: &mut Report<'_>) -> Option<(&'e str, Regex)> {
    let Ok(regex) = Regex::new(&format!(r"\A(?:{text})\z")) else {
        report.add(
            "csv.pattern",
            format!("`{text}` is no regular expression; the workflow's check is wrong"),
            |finding| finding,
        );
        return None;
    };
    Some((text, regex))
}

impl Column<'_> {
    fn place(&self, place: Place) -> String {
        format!("{place}, column {}", self.name)
    }

    fn check(&self, text: &str, place: Place, report: &mut Report<'_>) {
        if text.is_empty() {
            if self.not_null {
                report.add("csv.not_null", "a cell is empty", |finding| {
                    finding.place(self.place(place)).expected("a value")
                });
            }
            return;
        }
        match self.kind {
            Some(kind) if !value::is(kind, text) => {
                report.add("csv.type", format!("a cell is no {}", kind.as_str()), |finding| {
                    finding
                        .place(self.place(place))
                        .expected(value::example(kind))
                        .found(shown(text))
                });
            }
            _ => self.in_range(text, place, report),
        }
        if let Some(words) = self.words.filter(|words| !words.iter().any(|word| word == text)) {
            report.add(
                "csv.enum",
                "a cell holds another word than those allowed",
                |finding| {
                    finding
                        .place(self.place(place))
                        .expected(listed(words.iter().map(String::as_str)))
                        .found(shown(text))
                },
            );
        }
        if let Some((pattern, _)) = self.pattern.as_ref().filter(|(_, regex)| !regex.is_match(text)) {
            report.add("csv.pattern", "a cell does not match its pattern", |finding| {
                finding
                    .place(self.place(place))
                    .expected(format!("`{pattern}`, the whole cell"))
                    .found(shown(text))
            });
        }
    }

    fn in_range(&self, text: &str, place: Place, report: &mut Report<'_>) {
        let Some(range) = self.range else {
            return;
        };
        let number = value::number(text);
        let inside = number.is_some_and(|number| {
            range.min.is_none_or(|min| number >= min) && range.max.is_none_or(|max| number <= max)
        });
        if inside {
            return;
        }
        let message = match number {
            Some(_) => "a number is out of range",
            None => "a cell is no number",
        };
        report.add("csv.range", message, |finding| {
            finding
                .place(self.place(place))
                .expected(bounds(range))
                .found(shown(text))
        });
    }
}

fn bounds(range: Range) -> String {
    match (range.min, range.max) {
        (Some(min), Some(max)) => format!("{min} to {max}"),
        (Some(min), None) => format!("at least {min}"),
        (None, Some(max)) => format!("at most {max}"),
        (None, None) => "a number".to_owned(),
    }
}

fn shown(text: &str) -> String {
    format!("`{text}`")
}
