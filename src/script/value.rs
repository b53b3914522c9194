//! Reading one value of a script: the right type, or a mistake that says what stands there.

use std::time::Duration;

use mlua::Value;

use super::api::advice;
use super::api::objects::Thing;
use super::host::Host;
use super::place::Place;
use crate::diagnostic::{Diagnostic, nearest};
use crate::workflow::units;

/// Notes that `value` is not what is wanted there.
pub(super) fn wrong<T>(host: &Host, place: &Place, path: &str, wanted: &str, value: &Value) -> Option<T> {
    let message = format!("`{path}` is {}, and must be {wanted}", describe(value));
    let label = format!("must be {wanted}");
    host.mistake(place.mark_value(Diagnostic::new("script::wrong_type", message), &label));
    None
}

/// Notes that `value` has the right type and cannot be used.
pub(super) fn bad<T>(
    host: &Host,
    place: &Place,
    code: &'static str,
    message: String,
    help: &str,
) -> Option<T> {
    let mistake = place.mark_value(Diagnostic::new(code, message), "here");
    host.mistake(mistake.help(help));
    None
}

/// A value for people: `a number (5)`, `an expectation`, `a function`.
pub(super) fn describe(value: &Value) -> String {
    match value {
        Value::Nil => "missing".into(),
        Value::Boolean(flag) => format!("{flag}"),
        Value::Integer(number) => format!("a number ({number})"),
        Value::Number(number) => format!("a number ({number})"),
        Value::String(text) => format!("a string (\"{}\")", shorten(&text.to_string_lossy())),
        Value::UserData(thing) => match thing.borrow::<Thing>() {
            Ok(thing) => thing.describe().to_owned(),
            Err(_) => "an object of the run".into(),
        },
        other => format!("a {}", other.type_name()),
    }
}

/// Text made short and printable for a message.
pub(super) fn shorten(text: &str) -> String {
    /// Enough to know it again.
    const LONGEST: usize = 40;
    let shown = crate::event::input::printable(text.as_ref());
    match shown.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &shown[..end]),
        None => shown,
    }
}

/// Text.
pub(super) fn text(host: &Host, place: &Place, path: &str, value: &Value) -> Option<String> {
    match value {
        Value::String(text) => match text.to_str() {
            Ok(text) => Some(text.to_owned()),
            Err(_) => wrong(host, place, path, "text in UTF-8", value),
        },
        other => wrong(host, place, path, "a string", other),
    }
}

/// `true` or `false`.
pub(super) fn flag(host: &Host, place: &Place, path: &str, value: &Value) -> Option<bool> {
    match value {
        Value::Boolean(flag) => Some(*flag),
        other => wrong(host, place, path, "true or false", other),
    }
}

/// A finite number.
pub(super) fn number(host: &Host, place: &Place, path: &str, value: &Value) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "a limit or a bound, not a count")]
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Number(number) if number.is_finite() => Some(*number),
        other => wrong(host, place, path, "a number", other),
    }
}

/// A whole number from zero.
pub(super) fn count(host: &Host, place: &Place, path: &str, value: &Value) -> Option<u64> {
    let whole = match value {
        Value::Integer(number) => u64::try_from(*number).ok(),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to be whole and in range"
        )]
        Value::Number(number) if number.fract() == 0.0 && (0.0..9e15).contains(number) => {
            Some(*number as u64)
        }
        _ => None,
    };
    whole.or_else(|| wrong(host, place, path, "a whole number, 0 or more", value))
}

/// A duration: text such as `10m`, or seconds.
pub(super) fn duration(host: &Host, place: &Place, path: &str, value: &Value) -> Option<Duration> {
    match value {
        Value::String(written) => match units::duration(&written.to_string_lossy()) {
            Ok(duration) => Some(duration),
            Err(why) => {
                let why = why.replace(&*written.to_string_lossy(), &shorten(&written.to_string_lossy()));
                let message = format!("`{path}` is not a duration");
                bad(host, place, "script::bad_limit", message, &why)
            }
        },
        Value::Integer(_) | Value::Number(_) => {
            let seconds = number(host, place, path, value)?;
            match Duration::try_from_secs_f64(seconds) {
                Ok(duration) => Some(duration),
                Err(_) => wrong(host, place, path, "a duration above zero", value),
            }
        }
        other => wrong(host, place, path, "a duration such as \"10m\", or seconds", other),
    }
}

/// A size: text such as `20MB`, or bytes.
pub(super) fn size(host: &Host, place: &Place, path: &str, value: &Value) -> Option<u64> {
    match value {
        Value::String(written) => match units::size(&written.to_string_lossy()) {
            Ok(size) => Some(size),
            Err(why) => {
                let why = why.replace(&*written.to_string_lossy(), &shorten(&written.to_string_lossy()));
                let message = format!("`{path}` is not a size");
                bad(host, place, "script::bad_limit", message, &why)
            }
        },
        Value::Integer(_) | Value::Number(_) => count(host, place, path, value),
        other => wrong(host, place, path, "a size such as \"20MB\", or bytes", other),
    }
}

/// One word of a few; `code` is that of the mistake when it is none of them.
pub(super) fn word<T: Copy>(
    host: &Host,
    place: &Place,
    path: &str,
    value: &Value,
    code: &'static str,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Option<T> {
    let said = text(host, place, path, value)?;
    let words: Vec<&str> = all.iter().map(|one| name(*one)).collect();
    if let Some(found) = all.iter().find(|one| name(**one) == said) {
        return Some(*found);
    }
    let message = format!("`{path}` cannot be `{}`", shorten(&said));
    let help = advice(nearest(&said, words.iter().copied()), &words);
    bad(host, place, code, message, &help)
}

/// The items of a list, with their places.
pub(super) fn list(host: &Host, place: &Place, path: &str, value: &Value) -> Option<Vec<(Place, Value)>> {
    let Value::Table(table) = value else {
        return wrong(host, place, path, "a list", value);
    };
    let mut items = Vec::new();
    let length = table.raw_len();
    for index in 1..=length {
        items.push((place.item(index), table.raw_get(index).unwrap_or(Value::Nil)));
    }
    if table.pairs::<Value, Value>().count() != length {
        return wrong(host, place, path, "a list without names or gaps", value);
    }
    Some(items)
}

/// A list of texts.
pub(super) fn texts(host: &Host, place: &Place, path: &str, value: &Value) -> Option<Vec<String>> {
    let items = list(host, place, path, value)?;
    Some(
        items
            .iter()
            .enumerate()
            .filter_map(|(index, (place, value))| text(host, place, &format!("{path}[{}]", index + 1), value))
            .collect(),
    )
}

/// The entries of a table keyed by names, in the order of the names.
pub(super) fn map(
    host: &Host,
    place: &Place,
    path: &str,
    value: &Value,
) -> Option<Vec<(String, Place, Value)>> {
    let Value::Table(table) = value else {
        return wrong(host, place, path, "a table", value);
    };
    let mut entries = Vec::new();
    for (key, value) in table.pairs::<Value, Value>().flatten() {
        match key {
            Value::String(key) => {
                let key = key.to_string_lossy();
                entries.push((key.clone(), place.name(&key), value));
            }
            Value::Integer(index) => {
                let at = usize::try_from(index).map_or(place.clone(), |index| place.item(index));
                let message = format!("`{path}` holds {} without a name", describe(&value));
                let help = "write `[\"name\"] = value`";
                bad::<()>(host, &at, "script::wrong_type", message, help);
            }
            other => {
                wrong::<()>(host, place, path, "a table keyed by names", &other);
            }
        }
    }
    entries.sort_by(|left, right| left.0.cmp(&right.0));
    Some(entries)
}
