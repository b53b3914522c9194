//! Who does the work and what it is asked.

use crate::workflow::Hook;

/// The agent of a workflow.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    /// A name for logs; `agent` when the script gives none.
    pub name: String,
    /// A model of `tidemill.toml`, or the provider's own name for one.
    pub model: String,
    /// What it is told before the prompt; a `mill.file` has been read.
    pub instructions: String,
    /// Model calls at most, repairs included.
    pub max_turns: u32,
    /// What it keeps from run to run.
    pub memory: Memory,
}

/// What an agent keeps from run to run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Memory {
    /// Nothing.
    #[default]
    None,
    /// Notes of its own.
    Notes,
}

impl Agent {
    /// Enough for an investigation with a few dead ends; an endless loop still ends.
    pub const DEFAULT_MAX_TURNS: u32 = 30;
}

/// What the agent is asked.
#[derive(Debug, Clone, PartialEq)]
pub enum Prompt {
    /// The same for every input; a `mill.file` has been read.
    Text(String),
    /// A function of the run.
    Hook(Hook),
}

/// What happens when a check fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Repair {
    /// How often findings go back to the agent.
    pub attempts: u32,
}
