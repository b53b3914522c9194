//! The models an agent can think with: one trait, a few protocols.

mod calls;
pub mod chat;
mod estimate;
mod failure;
mod feed;
mod frames;
pub mod key;
mod open;
mod prices;
pub mod responses;
mod retry_after;
pub mod scripted;
pub mod server;

pub use crate::event::finish::Finish;
pub use estimate::estimate_tokens;
pub use open::{open, price};

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::diagnostic::Diagnostic;
use crate::event::ToolCall;
use crate::event::usage::Usage;

/// A model that takes a conversation one turn further.
#[async_trait]
pub trait Model: Send + Sync + fmt::Debug {
    /// Its name in `tidemill.toml` or the provider's.
    fn name(&self) -> &str;

    /// Answers once. Does not retry; the error says whether a retry can help.
    async fn respond(
        &self,
        request: &Request<'_>,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Response, ModelError>;
}

/// What a model is sent.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// What the agent is told before everything else.
    pub instructions: &'a str,
    /// The conversation so far. Every tool call in it is answered exactly once, in order.
    pub items: &'a [Item],
    /// What it may ask for; empty for a closing turn.
    pub tools: &'a [ToolSpec],
    /// Tokens it may write at most, reasoning included.
    pub max_output_tokens: Option<u64>,
}

/// One item of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "item", rename_all = "snake_case")]
pub enum Item {
    /// From us: the prompt, findings, a nudge.
    User {
        /// Its text.
        text: String,
    },
    /// From the model, to people.
    Assistant {
        /// Its text.
        text: String,
    },
    /// From the model: use a tool.
    Call(ToolCall),
    /// From us: what the tool said.
    Output {
        /// The id of the call it answers.
        call: String,
        /// What the model is told.
        output: String,
    },
    /// From the provider, to be sent back word for word (reasoning items); other providers leave it out.
    Verbatim {
        /// The provider it came from.
        provider: String,
        /// As it came.
        value: Value,
    },
}

/// A tool the model may ask for.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// `[a-z_]+`.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of its arguments: an object with every property required and no others allowed.
    pub parameters: Value,
}

/// A piece of a streamed answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// Text for people.
    Text(String),
    /// A sign of life without text: reasoning, a tool call growing.
    Alive,
}

/// What a model answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// The items to append to the conversation, calls included, in the order they came.
    pub items: Vec<Item>,
    /// Why it stopped.
    pub finish: Finish,
    /// Tokens, when the server counts them.
    pub usage: Option<Usage>,
    /// The model's name as the server says it.
    pub model: Option<String>,
}

impl Response {
    /// The text for people, all of it.
    pub fn text(&self) -> String {
        let texts = self.items.iter().filter_map(|item| match item {
            Item::Assistant { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The tool calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.items.iter().filter_map(|item| match item {
            Item::Call(call) => Some(call),
            _ => None,
        })
    }
}

/// Why a model did not answer.
#[derive(Debug)]
pub struct ModelError {
    /// What happened and what to do, with the provider's own words.
    pub diagnostic: Diagnostic,
    /// Whether trying again can help.
    pub retry: Retry,
}

/// Whether trying again can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// No: a wrong key, a bad request, an unknown model.
    Never,
    /// Yes, after a while: too many requests, an overloaded server, a cut stream.
    After {
        /// What the server asked us to wait.
        asked: Option<Duration>,
    },
}
