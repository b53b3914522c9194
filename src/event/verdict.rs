//! What a guardrail says, and before what it is asked.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Before what a guardrail is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The dropped file is used.
    Input,
    /// The prompt is sent.
    Prompt,
    /// A tool runs.
    ToolCall,
    /// A tool's output is shown to the model.
    ToolOutput,
    /// The agent's final answer is accepted.
    Answer,
}

impl Stage {
    /// Every stage, in the order of a run.
    pub const ALL: [Self; 5] = [Self::Input, Self::Prompt, Self::ToolCall, Self::ToolOutput, Self::Answer];

    /// The word used in scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Prompt => "prompt",
            Self::ToolCall => "tool_call",
            Self::ToolOutput => "tool_output",
            Self::Answer => "answer",
        }
    }

    /// The stage of that word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.as_str() == word)
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// What a guardrail says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// Go on.
    Pass,
    /// Stop, and why.
    Deny {
        /// A sentence for people, and for the model where a tool call is concerned.
        reason: String,
    },
    /// A person must say yes. Denies until approvals exist.
    Ask {
        /// What the person is asked.
        reason: String,
    },
    /// Go on with this text instead: the prompt, the tool's arguments (JSON), its output, or the answer.
    Replace {
        /// The new text.
        with: String,
        /// Why.
        reason: String,
    },
}
