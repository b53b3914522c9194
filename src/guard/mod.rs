//! What is checked before something happens: the guardrail pipeline and its verdicts.

pub mod commands;
pub mod input_size;
mod pipeline;

pub use pipeline::{Judgement, Outcome, Pipeline};

use std::fmt;

use async_trait::async_trait;

use crate::diagnostic::Result;
use crate::event::verdict::{Stage, Verdict};
use crate::guard::commands::Commands;
use crate::guard::input_size::InputSize;
use crate::workflow::guardrail::Guardrail;

/// A check before something happens. Built-in ones live here, functions of scripts in `script`.
#[async_trait]
pub trait Guard: Send + Sync + fmt::Debug {
    /// Its name in logs, e.g. `commands` or what the script calls it.
    fn name(&self) -> &str;

    /// Whether it is asked before this.
    fn watches(&self, stage: Stage) -> bool;

    /// Judges. An error counts as a denial: guardrails fail closed.
    async fn judge(&self, subject: &Subject<'_>) -> Result<Verdict>;
}

/// What a guardrail judges.
#[derive(Debug, Clone, Copy)]
pub enum Subject<'a> {
    /// A dropped file.
    Input {
        /// Its name, made printable.
        name: &'a str,
        /// Bytes.
        size: u64,
        /// The run's own copy of it.
        file: &'a std::path::Path,
    },
    /// The prompt.
    Prompt {
        /// Its text.
        text: &'a str,
    },
    /// A tool call with arguments that are valid for the tool.
    ToolCall {
        /// The tool's name.
        tool: &'a str,
        /// Its arguments.
        arguments: &'a serde_json::Value,
    },
    /// What a tool said.
    ToolOutput {
        /// The tool's name.
        tool: &'a str,
        /// What the model would be told.
        output: &'a str,
    },
    /// The agent's final answer.
    Answer {
        /// Its text.
        text: &'a str,
    },
}

impl Subject<'_> {
    /// The stage it belongs to.
    pub fn stage(&self) -> Stage {
        match self {
            Self::Input { .. } => Stage::Input,
            Self::Prompt { .. } => Stage::Prompt,
            Self::ToolCall { .. } => Stage::ToolCall,
            Self::ToolOutput { .. } => Stage::ToolOutput,
            Self::Answer { .. } => Stage::Answer,
        }
    }
}

/// The guard that a declared guardrail stands for; `None` for a function of the script, which `script` makes.
pub fn built_in(guardrail: &Guardrail) -> Option<Box<dyn Guard>> {
    match guardrail {
        Guardrail::InputSize { max } => Some(Box::new(InputSize::new(*max))),
        Guardrail::Commands { deny, ask, allow } => Some(Box::new(Commands::new(deny, ask, allow))),
        Guardrail::Hook { .. } => None,
    }
}
