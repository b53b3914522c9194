//! `expect.json`: a document that parses, and that its schema accepts.

use serde_json::Value;

use crate::event::finding::Finding;
use crate::expect::read::{kind, whole};
use crate::expect::report::Report;
use crate::workflow::expectation::Json;
use crate::workflow::view::Artifact;

/// A parsed document takes several times its size in memory.
const LARGEST: u64 = 64 << 20;
/// Characters shown of the text around a mistake.
const EXCERPT: usize = 40;

/// Everything wrong with a document. Nesting deeper than 128 levels counts as a mistake of syntax.
pub(super) fn check(expect: &Json, artifact: &Artifact) -> Vec<Finding> {
    let mut report = Report::new(artifact);
    let document = whole(artifact, LARGEST, &mut report).and_then(|bytes| parse(&bytes, &mut report));
    if let Some((document, schema)) = document.as_ref().zip(expect.schema.as_ref()) {
        validate(schema, document, &mut report);
    }
    report.finish()
}

fn parse(bytes: &[u8], report: &mut Report<'_>) -> Option<Value> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let error = match serde_json::from_slice(bytes) {
        Ok(document) => return Some(document),
        Err(error) => error,
    };
    let whole = error.to_string();
    let what = whole.rsplit_once(" at line ").map_or(whole.as_str(), |(what, _)| what);
    report.add("json.syntax", format!("the file is not JSON: {what}"), |finding| {
        finding
            .place(format!("line {}, column {}", error.line(), error.column()))
            .expected("a JSON document")
            .found(excerpt(bytes, error.line(), error.column()))
    });
    None
}

/// The text up to and around the place of a mistake.
fn excerpt(bytes: &[u8], line: usize, column: usize) -> String {
    if bytes.contains(&0) || bytes.is_empty() {
        return kind(bytes);
    }
    let line = bytes.split(|byte| *byte == b'\n').nth(line.saturating_sub(1));
    let line = line.unwrap_or_default();
    let start = column.saturating_sub(EXCERPT / 2).min(line.len());
    let end = (start + EXCERPT).min(line.len());
    let text = String::from_utf8_lossy(&line[start..end]);
    let text = text.trim();
    let hint = ["NaN", "Infinity", "None", "True", "False"].into_iter().find(|word| text.contains(word));
    match hint {
        Some(word) => format!("`{text}`; `{word}` is not JSON"),
        None if text.is_empty() => "the end of the text".to_owned(),
        None => format!("`{text}`"),
    }
}

/// All errors, with the place in the document. References to other documents are not followed.
fn validate(schema: &Value, document: &Value, report: &mut Report<'_>) {
    let validator = match jsonschema::options().offline().build(schema) {
        Ok(validator) => validator,
        Err(error) => {
            report.add("json.schema", format!("the workflow's schema cannot be used: {error}"), |finding| {
                finding
            });
            return;
        }
    };
    for error in validator.iter_errors(document) {
        let place = error.instance_path().as_str().to_owned();
        report.add("json.schema", error.masked_with("the value").to_string(), |finding| {
            finding
                .place(if place.is_empty() { "/".to_owned() } else { place })
                .expected(format!("`{}` of the schema", error.schema_path()))
                .found(error.instance().to_string())
        });
    }
}
