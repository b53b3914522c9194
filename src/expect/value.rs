//! What a cell's text is: a number, a date, a word.

use std::sync::LazyLock;

use jiff::civil::{Date, Time};
use regex::Regex;

use crate::workflow::expectation::ColumnType;

/// Whether a text, empty ones aside, is of the type.
pub(super) fn is(kind: ColumnType, text: &str) -> bool {
    match kind {
        ColumnType::String => true,
        ColumnType::Integer => {
            let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        }
        ColumnType::Number => number(text).is_some(),
        ColumnType::Boolean => text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false"),
        ColumnType::Date => date(text),
        ColumnType::Datetime => datetime(text),
    }
}

/// What the type looks like, for people.
pub(super) fn example(kind: ColumnType) -> &'static str {
    match kind {
        ColumnType::String => "text",
        ColumnType::Integer => "a whole number such as `42`",
        ColumnType::Number => "a number such as `42.5`",
        ColumnType::Boolean => "`true` or `false`",
        ColumnType::Date => "a date such as `2026-11-30`",
        ColumnType::Datetime => "a time such as `2026-11-30 06:00`",
    }
}

/// A finite number as programs write it: no blanks, no thousands.
pub(super) fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Year, month and day as digits; jiff then knows which days exist.
fn date(text: &str) -> bool {
    let shape = text.bytes().enumerate().all(|(at, byte)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    text.len() == 10 && shape && text.parse::<Date>().is_ok()
}

static DATETIME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let shape = r"\A([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?) ?(?:Z|[+-]([0-9]{2}):?([0-9]{2}))?\z";
    Regex::new(shape).ok()
});

fn datetime(text: &str) -> bool {
    let Some(parts) = DATETIME.as_ref().and_then(|shape| shape.captures(text)) else {
        return false;
    };
    let part = |at| parts.get(at).map_or("00", |part| part.as_str());
    date(part(1)) && part(2).parse::<Time>().is_ok() && part(3) < "24" && part(4) < "60"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_knows_its_own() {
        let good = [
            (ColumnType::String, "anything"),
            (ColumnType::Integer, "42"),
            (ColumnType::Integer, "-7"),
            (ColumnType::Integer, "123456789012345678901234567890"),
            (ColumnType::Number, "42"),
            (ColumnType::Number, "-4.2e-3"),
            (ColumnType::Number, ".5"),
            (ColumnType::Boolean, "True"),
            (ColumnType::Boolean, "false"),
            (ColumnType::Date, "2024-02-29"),
            (ColumnType::Datetime, "2026-11-30 06:00"),
            (ColumnType::Datetime, "2026-11-30T06:00:59"),
            (ColumnType::Datetime, "2026-11-30T06:00:59.123Z"),
            (ColumnType::Datetime, "2026-11-30 06:00:00+01:00"),
            (ColumnType::Datetime, "2026-11-30 06:00:00 -0530"),
        ];
        for (kind, text) in good {
            assert!(is(kind, text), "{text:?} is {}", kind.as_str());
        }
    }

    #[test]
    fn what_is_nearly_one_is_none() {
        let bad = [
            (ColumnType::Integer, "4.0"),
            (ColumnType::Integer, "-"),
            (ColumnType::Integer, " 4"),
            (ColumnType::Integer, "1e3"),
            (ColumnType::Number, "NaN"),
            (ColumnType::Number, "inf"),
            (ColumnType::Number, "1e999"),
            (ColumnType::Number, "1,000"),
            (ColumnType::Number, "12 kWh"),
            (ColumnType::Boolean, "yes"),
            (ColumnType::Boolean, "1"),
            (ColumnType::Date, "2026-02-29"),
            (ColumnType::Date, "2026-1-1"),
            (ColumnType::Date, "30.11.2026"),
            (ColumnType::Date, "20261130"),
            (ColumnType::Date, "2026-11-30 06:00"),
            (ColumnType::Datetime, "2026-11-30"),
            (ColumnType::Datetime, "2026-11-30 24:00"),
            (ColumnType::Datetime, "2026-11-31 06:00"),
            (ColumnType::Datetime, "2026-11-30 6:00"),
            (ColumnType::Datetime, "2026-11-30 06:00 +25:00"),
            (ColumnType::Datetime, "2026-11-30  06:00"),
        ];
        for (kind, text) in bad {
            assert!(!is(kind, text), "{text:?} is not {}", kind.as_str());
        }
    }
}
