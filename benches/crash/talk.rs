//! A conversation as the model reads it, in either protocol.

use serde_json::Value;
use tidemill::event::id::Digest;

use crate::kind::Kind;
use crate::wire::Seen;

/// One thing that was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// By the host.
    User(String),
    /// By the model.
    Model(String),
    /// By a tool.
    Output(String),
}

/// What was said so far.
#[derive(Debug)]
pub struct Talk {
    /// The workflow.
    pub kind: Kind,
    /// The run.
    pub run: String,
    /// What else the prompt says: the instant of a scheduled run.
    pub rest: String,
    /// All of it, word for word, in short.
    pub hash: String,
    /// In order.
    pub said: Vec<Said>,
}

impl Talk {
    /// Reads a request. Nothing when it is not about a run of ours.
    pub fn of(seen: &Seen) -> Option<Self> {
        let said: Vec<Said> = seen.items().iter().filter_map(said).collect();
        let Some(Said::User(prompt)) = said.first() else { return None };
        let mut words = prompt.split_whitespace();
        let (kind, run) = (Kind::of(words.next()?)?, words.next()?.to_owned());
        let rest = words.collect::<Vec<_>>().join(" ");
        let hash = Digest::of(serde_json::to_vec(seen.items()).ok()?).short().to_owned();
        Some(Self { kind, run, rest, hash, said })
    }

    /// What tools said since the host spoke last.
    pub fn since_spoken_to(&self) -> Vec<&str> {
        let outputs = self.said.iter().rev().take_while(|said| !matches!(said, Said::User(_)));
        let mut outputs: Vec<&str> = outputs
            .filter_map(|said| match said {
                Said::Output(text) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        outputs.reverse();
        outputs
    }

    /// Whether nobody but the host has said anything.
    pub fn has_just_begun(&self) -> bool {
        self.said.iter().all(|said| matches!(said, Said::User(_)))
    }

    /// Whether the model has said this before.
    pub fn has_said(&self, word: &str) -> bool {
        self.said.iter().any(|said| matches!(said, Said::Model(text) if text.contains(word)))
    }
}

fn said(item: &Value) -> Option<Said> {
    match (item["type"].as_str(), item["role"].as_str()) {
        (Some("function_call_output"), _) => Some(Said::Output(text(&item["output"]))),
        (_, Some("tool")) => Some(Said::Output(text(&item["content"]))),
        (_, Some("user")) => Some(Said::User(text(&item["content"]))),
        (_, Some("assistant")) => Some(Said::Model(text(&item["content"]))),
        _ => None,
    }
}

/// A content is a text, or a list of parts with texts.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}
