//! Lua's errors as diagnostics: the line underlined, the way to it, no frames of the host.

use std::ops::Range;
use std::sync::Arc;

use super::host::{Chunk, Host};
use super::raised::{Kind, Raised};
use crate::diagnostic::Diagnostic;

/// When an error happened: it decides the code, and with it the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// While the script loaded: `script::...`
    Load,
    /// While a run called one of its functions: `hook::...`
    Hook,
}

/// Turns an error of the Lua state into what a user meets.
///
/// Where Lua does not say where it happened (memory ran out), `home` is named: what was running, by its first line.
pub(super) fn diagnostic(
    host: &Host,
    error: &mlua::Error,
    phase: Phase,
    home: Option<(Arc<Chunk>, usize)>,
) -> Diagnostic {
    let found = Found::in_chain(error);
    let text = found.text.as_str();
    let (place, message) = place_of(host, text, found.traceback.as_deref());
    let raised = error.downcast_ref::<Raised>();
    let at = raised.and_then(|raised| raised.at.as_ref());
    let place = place.or_else(|| at.and_then(|(name, line)| Some((host.chunk(name)?, *line))));
    let is_memory = matches!(found.root, mlua::Error::MemoryError(_)) || text.contains("not enough memory");
    let (code, message, help) = match (raised, found.root) {
        (Some(raised), _) => {
            let code = match (raised.kind, phase) {
                (Kind::Limit, Phase::Load) => "script::limit",
                (Kind::Limit, Phase::Hook) => "hook::limit",
                (Kind::Misuse, Phase::Load) => "script::misuse",
                (Kind::Misuse, Phase::Hook) => "hook::misuse",
                (Kind::Unknown, Phase::Load) => "script::unknown_name",
                (Kind::Unknown, Phase::Hook) => "hook::unknown_name",
            };
            let message = match raised.kind {
                Kind::Limit => format!("the script was stopped: {}", raised.message),
                Kind::Misuse | Kind::Unknown => raised.message.clone(),
            };
            (code, message, raised.help.clone())
        }
        (None, _) if is_memory => {
            let code = if phase == Phase::Load {
                "script::limit"
            } else {
                "hook::limit"
            };
            let message = "the script was stopped: it needs more than 64 MB of memory".to_owned();
            let help =
                "read large files row by row with `:csv()` or `:lines()`, and keep only what is needed";
            (code, message, Some(help.to_owned()))
        }
        (None, mlua::Error::SyntaxError { .. }) => ("script::syntax", message, None),
        (None, _) if message.starts_with("table: 0x") => {
            let code = if phase == Phase::Load {
                "script::runtime"
            } else {
                "hook::failed"
            };
            let help = "raise text: error(\"what went wrong\")".to_owned();
            (
                code,
                "the script raised a table as an error".to_owned(),
                Some(help),
            )
        }
        (None, _) => {
            let code = if phase == Phase::Load {
                "script::runtime"
            } else {
                "hook::failed"
            };
            (code, message, None)
        }
    };
    let way = found.traceback.as_deref().map(|traceback| way(host, traceback));
    let help = match (help, way.filter(|way| way.len() > 1)) {
        (help, None) => help,
        (None, Some(way)) => Some(format!("Lua traceback:\n{}", way.join("\n"))),
        (Some(help), Some(way)) => Some(format!("{help}\nLua traceback:\n{}", way.join("\n"))),
    };
    let word = raised
        .and_then(|raised| raised.word.clone())
        .or_else(|| named(&message));
    let mut diagnostic = Diagnostic::new(code, message);
    if let Some((chunk, line)) = place {
        let span = narrow(&chunk, line, word.as_deref());
        diagnostic = diagnostic.label(&chunk.source, span, "here");
    } else if let Some((chunk, line)) = home {
        let text = if phase == Phase::Load {
            "in this file"
        } else {
            "in this function"
        };
        diagnostic = diagnostic.label(&chunk.source, chunk.source.line_span(line), text);
    }
    match help {
        Some(help) => diagnostic.help(help),
        None => diagnostic,
    }
}

/// What the chain of an error holds.
struct Found<'a> {
    root: &'a mlua::Error,
    text: String,
    traceback: Option<String>,
}

impl<'a> Found<'a> {
    /// The innermost error is where it began; the errors around it only carried it.
    fn in_chain(error: &'a mlua::Error) -> Self {
        let mut root = error;
        let mut traceback = None;
        loop {
            match root {
                mlua::Error::CallbackError {
                    traceback: way,
                    cause,
                } => {
                    traceback = Some(way.clone());
                    root = cause;
                }
                mlua::Error::WithContext { cause, .. } => root = cause,
                _ => break,
            }
        }
        let whole = match root {
            mlua::Error::RuntimeError(text) | mlua::Error::SyntaxError { message: text, .. } => text.clone(),
            other => other.to_string(),
        };
        let text = match whole.split_once("\nstack traceback:") {
            Some((text, way)) => {
                traceback = Some(way.to_owned());
                text.to_owned()
            }
            None => whole,
        };
        Self {
            root,
            text,
            traceback,
        }
    }
}

/// The place an error speaks of, by its text or else by the first frame of the traceback; and the text without it.
fn place_of(host: &Host, text: &str, traceback: Option<&str>) -> (Option<(Arc<Chunk>, usize)>, String) {
    let text = text.trim();
    if let Some((place, rest)) = leading_place(host, text) {
        return (Some(place), rest.trim().to_owned());
    }
    let frame = traceback
        .unwrap_or_default()
        .lines()
        .find_map(|frame| leading_place(host, frame.trim()));
    (frame.map(|(place, _)| place), text.to_owned())
}

/// Reads `workflows/energy.lua:12: ...`; names with colons are found because they are known.
fn leading_place<'a>(host: &Host, text: &'a str) -> Option<((Arc<Chunk>, usize), &'a str)> {
    text.match_indices(':').find_map(|(colon, _)| {
        let chunk = host.chunk(&text[..colon])?;
        let (line, rest) = text[colon + 1..].split_once(':')?;
        Some(((chunk, line.parse().ok()?), rest))
    })
}

/// The frames of the script, innermost first.
fn way(host: &Host, traceback: &str) -> Vec<String> {
    /// A deep recursion repeats itself.
    const LONGEST: usize = 10;
    let frames = traceback.lines().map(str::trim);
    frames
        .filter(|frame| leading_place(host, frame).is_some())
        .map(|frame| format!("  {frame}"))
        .take(LONGEST)
        .collect()
}

/// The name in `attempt to index a nil value (field 'rows')`.
fn named(message: &str) -> Option<String> {
    let (_, rest) = message.rsplit_once(" '")?;
    let (name, _) = rest.split_once('\'')?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// The part of the line that is the word, when it stands there as a word; else the line.
fn narrow(chunk: &Chunk, line: usize, word: Option<&str>) -> Range<usize> {
    let whole = chunk.source.line_span(line);
    let (Some(word), Some(text)) = (word, chunk.source.text().get(whole.clone())) else {
        return whole;
    };
    let is_part = |character: Option<char>| character.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let start = text.match_indices(word).map(|(start, _)| start).find(|start| {
        !is_part(text[..*start].chars().next_back()) && !is_part(text[start + word.len()..].chars().next())
    });
    match start {
        Some(start) => whole.start + start..whole.start + start + word.len(),
        None => whole,
    }
}
