//! `read_file`: a text file of the workspace, or a range of its lines.

use std::fmt::Write as _;
use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::agent::tools::{Class, Effect, Given, Told, Tool, object, parse, told_or_failed};
use crate::diagnostic::Result;
use crate::event::ToolOutcome;
use crate::model::ToolSpec;
use crate::sandbox::Sandbox;
use crate::workflow::path::WorkspacePath;
use crate::workflow::units::show_size;

/// Reads text files.
#[derive(Debug)]
pub struct ReadFile {
    sandbox: Arc<dyn Sandbox>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    #[serde(default)]
    first_line: Option<usize>,
    #[serde(default)]
    lines: Option<usize>,
}

impl ReadFile {
    /// Larger files are for commands, not for a conversation.
    const LARGEST: u64 = 16 << 20;
    /// Characters told at once: about 8,000 tokens.
    const SHOWN: usize = 32 * 1024;

    /// In this sandbox.
    pub fn new(sandbox: Arc<dyn Sandbox>) -> Self {
        Self { sandbox }
    }
}

#[async_trait]
impl Tool for ReadFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "read_file".to_owned(),
            description: "Reads a text file of the workspace. first_line (from 1) and lines choose a range; null means \
                          from the start and to the end. A long text is cut, and you are told where to go on."
                .to_owned(),
            parameters: object(&json!({
                "path": { "type": "string", "description": "Path relative to /workspace." },
                "first_line": { "type": ["integer", "null"], "minimum": 1 },
                "lines": { "type": ["integer", "null"], "minimum": 1 },
            })),
        }
    }

    fn check(&self, arguments: &Value) -> Result<(), String> {
        let arguments: Arguments = parse(arguments)?;
        WorkspacePath::parse(&arguments.path).map(drop).map_err(|why| format!("`path` {why}"))
    }

    fn class(&self) -> Class {
        Class::Repeatable
    }

    fn effect(&self) -> Effect {
        Effect::Looks
    }

    async fn call(&self, arguments: &Value, _: Given) -> Result<Told> {
        let parsed = parse::<Arguments>(arguments).and_then(|arguments| {
            let path = WorkspacePath::parse(&arguments.path).map_err(str::to_owned)?;
            Ok((path, arguments))
        });
        let (path, arguments) = match parsed {
            Ok(parsed) => parsed,
            Err(complaint) => return Ok(Told::of(ToolOutcome::Failed, complaint)),
        };
        let bytes = match self.sandbox.read(&path, Self::LARGEST).await {
            Ok(bytes) => bytes,
            Err(error) => return told_or_failed(error),
        };
        let Ok(text) = std::str::from_utf8(&bytes) else {
            let size = show_size(bytes.len() as u64);
            return Ok(Told::of(ToolOutcome::Failed, format!("`{path}` is not UTF-8 text ({size}).")));
        };
        Ok(Told::of(ToolOutcome::Done, range(text, arguments.first_line.unwrap_or(1), arguments.lines)))
    }
}

/// The asked lines, cut at [`ReadFile::SHOWN`], with a last line that says what is left out.
fn range(text: &str, first: usize, lines: Option<usize>) -> String {
    let first = first.max(1);
    let all = text.lines().count();
    let mut shown = String::new();
    let mut next = first;
    for line in text.split_inclusive('\n').skip(first - 1).take(lines.unwrap_or(usize::MAX)) {
        if shown.len() + line.len() > ReadFile::SHOWN {
            break;
        }
        shown.push_str(line);
        next += 1;
    }
    if next == first && first <= all {
        let start: String =
            text.lines().nth(first - 1).unwrap_or_default().chars().take(ReadFile::SHOWN / 4).collect();
        let _ = write!(shown, "{start}\n[... line {first} is longer than can be shown; use a command ...]");
    } else if next <= all {
        let last = next.saturating_sub(1);
        let _ = write!(shown, "[... lines {first} to {last} of {all}; go on with first_line {next} ...]");
    } else if shown.is_empty() {
        let _ = write!(shown, "[the file has {all} lines, nothing stands at line {first}]");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::range;

    #[test]
    fn a_range_says_where_to_go_on() {
        assert_eq!(range("a\nb\nc\n", 2, Some(1)), "b\n[... lines 2 to 2 of 3; go on with first_line 3 ...]");
        assert_eq!(range("a\nb\n", 1, None), "a\nb\n");
        assert_eq!(range("", 1, None), "[the file has 0 lines, nothing stands at line 1]");
        assert_eq!(range("a\n", 9, None), "[the file has 1 lines, nothing stands at line 9]");
    }

    #[test]
    fn a_line_too_long_to_show_is_cut_and_said_so() {
        let shown = range(&"x".repeat(100_000), 1, None);
        assert!(shown.len() < 40_000 && shown.contains("longer than can be shown"), "{}", shown.len());
    }
}
