//! `unique`: the values of some columns together occur once.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use csv::ByteRecord;

use crate::expect::csv::Place;
use crate::expect::csv::header::Header;
use crate::expect::report::Report;

/// Which combinations were seen, and where first.
#[derive(Debug)]
pub(super) struct Unique {
    columns: Vec<usize>,
    names: String,
    /// Two keyed hashes of 64 bits stand for a combination: cells may be long, rows many, and two combinations that
    /// differ have the same pair once in 2^128.
    seen: HashMap<(u64, u64), u64>,
    hashers: (RandomState, RandomState),
}

impl Unique {
    /// Watches `columns`; nothing when there are none or one is missing, which was reported with the header.
    pub fn new(columns: &[String], header: &Header) -> Self {
        let places: Option<Vec<usize>> = columns.iter().map(|name| header.place(name)).collect();
        Self {
            columns: places.unwrap_or_default(),
            names: columns.join(", "),
            seen: HashMap::new(),
            hashers: (RandomState::new(), RandomState::new()),
        }
    }

    /// Adds a row whose combination was there before.
    pub fn check(&mut self, record: &ByteRecord, place: Place, report: &mut Report<'_>) {
        if self.columns.is_empty() {
            return;
        }
        let values: Option<Vec<&[u8]>> = self.columns.iter().map(|column| record.get(*column)).collect();
        let Some(values) = values else {
            return;
        };
        let key = (self.hashers.0.hash_one(&values), self.hashers.1.hash_one(&values));
        let first = *self.seen.entry(key).or_insert(place.row);
        if first != place.row {
            report.add("csv.unique", format!("the values of row {first} occur again"), |finding| {
                let shown: Vec<_> = values.iter().map(|value| String::from_utf8_lossy(value)).collect();
                finding
                    .place(format!("{place}, column {}", self.names))
                    .expected("every combination once")
                    .found(format!("`{}`", shown.join(", ")))
            });
        }
    }
}
