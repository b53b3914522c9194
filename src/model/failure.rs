//! What a server says went wrong, in its own words, and what that means for us.

use std::time::Duration;

use serde_json::Value;

use super::server::Server;
use super::{ModelError, Retry};
use crate::diagnostic::Diagnostic;
use crate::event::input::printable;

/// Of an answer that is no error message, this much is quoted.
const QUOTED: usize = 300;

/// An error as servers write it, whatever its shape.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Words {
    /// For people.
    message: String,
    /// `type`, `code` and what else classifies it, in lower case.
    kind: String,
    /// The status a numeric `code` stands for.
    status: Option<u16>,
}

impl Words {
    /// Finds the error in a message, when it holds one: `error` as an object or a text, or a bare object with a
    /// `message` or `detail` that says it is an error.
    pub fn find(value: &Value) -> Option<Self> {
        match value.get("error") {
            Some(Value::String(message)) => Some(Self::of(message, value)),
            Some(error @ Value::Object(_)) => Some(Self::of(&message(error), error)),
            _ if value["object"] == "error" || value["type"] == "error" => {
                Some(Self::of(&message(value), value))
            }
            _ => None,
        }
    }

    /// Reads the body of an answer whose status says it is an error.
    fn of_body(body: &str) -> Self {
        let parsed: Option<Value> = serde_json::from_str(body).ok();
        // An error can come in a list, and as an object of any shape.
        let value = parsed.map(|value| value.get(0).cloned().unwrap_or(value));
        match value {
            Some(value) => Self::find(&value).unwrap_or_else(|| Self::of(&message(&value), &value)),
            None => Self {
                message: body.trim().to_owned(),
                ..Self::default()
            },
        }
    }

    fn of(message: &str, error: &Value) -> Self {
        let text = |name: &str| match &error[name] {
            Value::String(text) => text.to_lowercase(),
            _ => String::new(),
        };
        let status = error["code"].as_u64().or_else(|| error["status"].as_u64());
        let status = status.and_then(|status| u16::try_from(status).ok());
        Self {
            message: message.to_owned(),
            kind: format!("{} {}", text("type"), text("code")),
            status: status.filter(|status| (400..600).contains(status)),
        }
    }
}

fn message(error: &Value) -> String {
    let text = ["message", "detail", "error"]
        .iter()
        .find_map(|name| error[*name].as_str());
    text.map_or_else(|| error.to_string(), ToOwned::to_owned)
}

/// What an answer with status `status` and body `body` means.
pub(super) fn of_answer(server: &Server, status: u16, asked: Option<Duration>, body: &str) -> ModelError {
    classify(server, Some(status), asked, &Words::of_body(body))
}

/// What an error inside an answer means whose status said all was well.
pub(super) fn of_message(server: &Server, words: &Words) -> ModelError {
    classify(server, words.status, None, words)
}

/// A kind of failure: its code, what happened, and whether trying again helps.
struct Kind {
    code: &'static str,
    what: &'static str,
    retry: bool,
    help: String,
}

fn classify(server: &Server, status: Option<u16>, asked: Option<Duration>, words: &Words) -> ModelError {
    let kind = kind(server, status, words);
    let status = status.map_or_else(String::new, |status| format!(" (status {status})"));
    let mut said = quote(server, &words.message);
    if !said.is_empty() {
        said.insert_str(0, ": ");
    }
    let text = format!("model `{}` {}{status}{said}", server.name(), kind.what);
    ModelError {
        diagnostic: Diagnostic::new(kind.code, text).help(kind.help),
        retry: if kind.retry {
            Retry::After { asked }
        } else {
            Retry::Never
        },
    }
}

fn kind(server: &Server, status: Option<u16>, words: &Words) -> Kind {
    let message = words.message.to_lowercase();
    let says = |parts: &[&str]| parts.iter().any(|part| words.kind.contains(part));
    let mentions = |parts: &[&str]| parts.iter().any(|part| message.contains(part));
    let never = |code, what, help: String| Kind {
        code,
        what,
        retry: false,
        help,
    };
    let later = |code, what, help: &str| Kind {
        code,
        what,
        retry: true,
        help: help.to_owned(),
    };
    if says(&["context_length", "exceed_context", "context_window"])
        || (matches!(status, Some(400 | 413 | 422) | None)
            && mentions(&[
                "context length",
                "context size",
                "context window",
                "maximum context",
            ]))
    {
        let help =
            "make the prompt, the files or the outputs smaller, or let the server use a larger context";
        return never(
            "model::context_overflow",
            "was sent more than fits its context",
            help.to_owned(),
        );
    }
    if says(&["insufficient_quota", "billing"]) {
        let help = "this does not pass by waiting: look at the account's plan and billing".to_owned();
        return never("model::quota", "has no quota left", help);
    }
    if status == Some(401) || says(&["invalid_api_key", "authentication"]) {
        return never(
            "model::unauthorized",
            "does not accept the key",
            server.key_help(),
        );
    }
    if status == Some(403) || says(&["permission"]) {
        let help = format!(
            "the key is known but not allowed to do this; {}",
            server.key_help()
        );
        return never("model::forbidden", "does not allow this", help);
    }
    if says(&["model_not_found"]) || (status == Some(404) && mentions(&["model"])) {
        return never(
            "model::unknown_model",
            "is not known to the server",
            server.model_help(),
        );
    }
    if let Some(300..400 | 404 | 405) = status {
        return never(
            "model::wrong_url",
            "has nothing at this address",
            server.url_help(),
        );
    }
    if status == Some(429) || says(&["rate_limit"]) {
        let help = "it is tried again after a while; fewer runs at once (`[watch] concurrency`) avoid it";
        return later("model::rate_limited", "was asked too often", help);
    }
    if matches!(status, Some(503 | 529)) || says(&["overloaded", "unavailable"]) {
        let help = "the server is busy or still loading the model; it is tried again after a while";
        return later("model::overloaded", "cannot answer now", help);
    }
    match status {
        Some(408 | 409 | 425 | 500..) => {
            let help =
                "the fault is on the server's side; it is tried again after a while, its log may say more";
            later("model::server_error", "failed", help)
        }
        Some(_) => {
            let help = "the server does not take the request; is `provider` right in its [models] table?";
            never("model::bad_request", "refused the request", help.to_owned())
        }
        None if says(&["invalid_request", "invalid_prompt"]) => {
            let help = "the server does not take the request; is `provider` right in its [models] table?";
            never("model::bad_request", "refused the request", help.to_owned())
        }
        None => later(
            "model::server_error",
            "failed while it answered",
            "it is tried again after a while; the server's log may say more",
        ),
    }
}

/// What a server wrote, fit to be shown: without the key, without control characters, not too long, on one line.
pub(super) fn quote(server: &Server, text: &str) -> String {
    let text = server.redact(text.trim());
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut short: String = words.chars().take(QUOTED).collect();
    if short.len() < words.len() {
        short.push('…');
    }
    printable(std::ffi::OsStr::new(&short))
}
