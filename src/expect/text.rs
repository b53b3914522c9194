//! `expect.text`: text in UTF-8 and what must be in it.

use regex::Regex;

use crate::event::finding::Finding;
use crate::expect::read::{kind, whole};
use crate::expect::report::Report;
use crate::workflow::expectation::Text;
use crate::workflow::view::Artifact;

/// A report for people is far below this, and patterns need the whole text at hand.
const LARGEST: u64 = 64 << 20;

/// Everything wrong with a text.
pub(super) fn check(expect: &Text, artifact: &Artifact) -> Vec<Finding> {
    let mut report = Report::new(artifact);
    if let Some(bytes) = whole(artifact, LARGEST, &mut report) {
        content(expect, &bytes, &mut report);
    }
    report.finish()
}

fn content(expect: &Text, bytes: &[u8], report: &mut Report<'_>) {
    if bytes.is_empty() {
        report.add("text.empty", "the file is empty", |finding| {
            finding.expected("text").found("0 bytes")
        });
    }
    let Some(text) = decode(bytes, report) else {
        return;
    };
    if expect.ascii {
        ascii(text, report);
    }
    words(expect, text, report);
    for wanted in &expect.contains {
        if !text.contains(wanted.as_str()) {
            report.add("text.contains", "a text is missing", |finding| {
                finding.expected(format!("`{wanted}` somewhere in the file"))
            });
        }
    }
    if let Some(pattern) = &expect.pattern {
        self::pattern(pattern, text, report);
    }
}

/// The text, or what keeps it from being one.
fn decode<'t>(bytes: &'t [u8], report: &mut Report<'_>) -> Option<&'t str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.contains('\0') => {
            report.add("text.encoding", "the file is not text", |finding| {
                finding.expected("text in UTF-8").found(kind(bytes))
            });
            None
        }
        Ok(text) => Some(text),
        Err(error) => {
            let (valid, rest) = bytes.split_at(error.valid_up_to());
            let line = valid.split(|byte| *byte == b'\n').count();
            report.add("text.encoding", "the file is not text in UTF-8", |finding| {
                let byte = rest.first().map(|byte| format!("byte 0x{byte:02x}"));
                finding
                    .place(format!("line {line}"))
                    .expected("text in UTF-8")
                    .found(format!("{} in {}", byte.unwrap_or_default(), kind(bytes)))
            });
            None
        }
    }
}

fn ascii(text: &str, report: &mut Report<'_>) {
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.is_ascii()) {
        for (column, character) in line.chars().enumerate().filter(|(_, found)| !found.is_ascii()) {
            report.add("text.ascii", "a character is not ASCII", |finding| {
                let (name, instead) = name(character);
                let shown = if character.is_control() || character.is_whitespace() {
                    String::new()
                } else {
                    format!("`{character}` ")
                };
                finding
                    .place(format!("line {}, column {}", index + 1, column + 1))
                    .expected(instead.map_or_else(|| "plain ASCII".to_owned(), |plain| format!("`{plain}`")))
                    .found(format!("{shown}(U+{:04X}{name})", u32::from(character)))
            });
        }
    }
}

/// A character's name and its plain spelling, for those that models and word processors like.
fn name(character: char) -> (&'static str, Option<&'static str>) {
    match character {
        '\u{2013}' => (" en dash", Some("-")),
        '\u{2014}' => (" em dash", Some("-")),
        '\u{2011}' => (" non-breaking hyphen", Some("-")),
        '\u{2212}' => (" minus sign", Some("-")),
        '\u{2018}' => (" left single quotation mark", Some("'")),
        '\u{2019}' => (" right single quotation mark", Some("'")),
        '\u{201c}' => (" left double quotation mark", Some("\"")),
        '\u{201d}' => (" right double quotation mark", Some("\"")),
        '\u{2026}' => (" ellipsis", Some("...")),
        '\u{00a0}' => (" no-break space", Some(" ")),
        '\u{202f}' => (" narrow no-break space", Some(" ")),
        '\u{00b0}' => (" degree sign", Some("deg")),
        '\u{00d7}' => (" multiplication sign", Some("x")),
        '\u{00b1}' => (" plus-minus sign", Some("+/-")),
        '\u{2022}' => (" bullet", Some("*")),
        '\u{2192}' => (" right arrow", Some("->")),
        '\u{2248}' => (" almost equal to", Some("~")),
        '\u{2264}' => (" less-than or equal to", Some("<=")),
        '\u{2265}' => (" greater-than or equal to", Some(">=")),
        '\u{feff}' => (" byte order mark", None),
        _ => ("", None),
    }
}

fn words(expect: &Text, text: &str, report: &mut Report<'_>) {
    let count = text.split_whitespace().count() as u64;
    if let Some(least) = expect.min_words.filter(|least| count < *least) {
        report.add("text.words", "the text is too short", |finding| {
            finding
                .expected(format!("at least {least} words"))
                .found(format!("{count} words"))
        });
    }
    if let Some(most) = expect.max_words.filter(|most| count > *most) {
        report.add("text.words", "the text is too long", |finding| {
            finding
                .expected(format!("at most {most} words"))
                .found(format!("{count} words"))
        });
    }
}

fn pattern(pattern: &str, text: &str, report: &mut Report<'_>) {
    match Regex::new(pattern) {
        Ok(regex) if regex.is_match(text) => {}
        Ok(_) => report.add("text.pattern", "the text does not match the pattern", |finding| {
            finding.expected(format!("`{pattern}` somewhere in the file"))
        }),
        Err(_) => report.add(
            "text.pattern",
            format!("`{pattern}` is no regular expression; the workflow's check is wrong"),
            |finding| finding,
        ),
    }
}
