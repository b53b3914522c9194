//! What a run may use.

use std::time::Duration;

use crate::event::usage::Cost;

/// Limits of one run, repairs included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Dollars for models. Needs a known price.
    pub cost: Option<Cost>,
    /// Tokens, read and written together.
    pub tokens: Option<u64>,
    /// Wall time from the ready image to the last check.
    pub wall: Duration,
    /// Wall time of one command unless the agent asks for less.
    pub command: Duration,
    /// Memory of the sandbox in bytes, the workspace included.
    pub memory: u64,
    /// Processor time in billionths of a core.
    pub nano_cpus: u64,
    /// Processes at once.
    pub pids: u64,
    /// Bytes that fit in `/workspace`.
    pub disk: u64,
}

impl Default for Limits {
    /// What an unattended run on an ordinary machine can be trusted with.
    fn default() -> Self {
        Self {
            cost: None,
            tokens: None,
            wall: Duration::from_secs(30 * 60),
            command: Duration::from_secs(2 * 60),
            memory: 2 << 30,
            nano_cpus: 2_000_000_000,
            pids: 256,
            disk: 1 << 30,
        }
    }
}
