//! What `expect.csv` says of single columns, and patterns.

use std::collections::BTreeMap;

use mlua::Value;

use crate::diagnostic::nearest;
use crate::script::api::{Class, Field, advice};
use crate::script::fields::Fields;
use crate::script::host::Host;
use crate::script::place::Place;
use crate::script::value;
use crate::workflow::expectation::{ColumnType, Range};

/// What a range takes.
pub(in crate::script) const RANGE: Class = Class {
    name: "tidemill.Range",
    word: "range",
    doc: "Bounds of a number, both included: { min = 0, max = 1 } or { 0, 1 }.",
    fields: &[
        Field { name: "min", kind: "number?", doc: "Least." },
        Field { name: "max", kind: "number?", doc: "Most." },
    ],
};

/// A field that says something of each column.
pub(in crate::script) fn columns<T>(
    host: &Host,
    fields: &Fields<'_>,
    name: &str,
    read: impl Fn(&Host, &Place, &str, &Value) -> Option<T>,
) -> BTreeMap<String, T> {
    let path = fields.path(name);
    fields
        .map(name)
        .into_iter()
        .filter_map(|(column, place, value)| {
            let said = read(host, &place, &format!("{path}.{}", value::shorten(&column)), &value)?;
            Some((column, said))
        })
        .collect()
}

/// The word for a type.
pub(in crate::script) fn column_type(
    host: &Host,
    place: &Place,
    path: &str,
    value: &Value,
) -> Option<ColumnType> {
    let word = value::text(host, place, path, value)?;
    let found = ColumnType::WORDS.into_iter().find(|(known, _)| *known == word);
    found.map(|(_, kind)| kind).or_else(|| {
        let words = ColumnType::WORDS.map(|(word, _)| word);
        let message = format!("`{path}` is \"{}\", which is no type of a column", value::shorten(&word));
        let help = advice(nearest(&word, words), &words);
        value::bad(host, place, "script::wrong_type", message, &help)
    })
}

/// `{ min = 0, max = 1 }` or `{ 0, 1 }`
pub(in crate::script) fn range(host: &Host, place: &Place, path: &str, value: &Value) -> Option<Range> {
    let range = match value {
        Value::Table(pair) if pair.raw_len() == 2 => Range {
            min: value::number(host, &place.item(1), path, &pair.raw_get(1).unwrap_or(Value::Nil)),
            max: value::number(host, &place.item(2), path, &pair.raw_get(2).unwrap_or(Value::Nil)),
        },
        other => {
            let fields = Fields::read(host, other.clone(), place.clone(), &RANGE)?;
            Range { min: fields.with("min", value::number), max: fields.with("max", value::number) }
        }
    };
    if let (Some(min), Some(max)) = (range.min, range.max)
        && min > max
    {
        let message = format!("`{path}` goes from {min} to {max}, so nothing can pass");
        return value::bad(host, place, "script::bad_limit", message, "the lower bound goes first");
    }
    Some(range)
}

/// A regular expression that compiles.
pub(in crate::script) fn pattern(host: &Host, place: &Place, path: &str, value: &Value) -> Option<String> {
    let text = value::text(host, place, path, value)?;
    match regex::Regex::new(&text) {
        Ok(_) => Some(text),
        Err(error) => {
            let why = error.to_string();
            let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            let message = format!("`{path}` is not a regular expression: {why}");
            let help = "write Lua's long string [[...]] where a pattern has backslashes";
            value::bad(host, place, "script::bad_pattern", message, help)
        }
    }
}
