//! `guard.commands { deny, ask, allow }`: which programs the agent's shell may run.

use async_trait::async_trait;

use crate::diagnostic::Result;
use crate::event::verdict::{Stage, Verdict};
use crate::guard::{Guard, Subject};

/// Judges every simple command of a shell call.
#[derive(Debug, Clone)]
pub struct Commands {
    deny: Vec<String>,
    ask: Vec<String>,
    allow: Vec<String>,
}

impl Commands {
    /// A guard with these patterns, e.g. `curl *`.
    pub fn new(deny: &[String], ask: &[String], allow: &[String]) -> Self {
        Self {
            deny: deny.to_vec(),
            ask: ask.to_vec(),
            allow: allow.to_vec(),
        }
    }
}

#[async_trait]
impl Guard for Commands {
    fn name(&self) -> &'static str {
        "commands"
    }

    fn watches(&self, stage: Stage) -> bool {
        stage == Stage::ToolCall
    }

    async fn judge(&self, _: &Subject<'_>) -> Result<Verdict> {
        let rules = self.deny.len() + self.ask.len() + self.allow.len();
        Ok(if rules == 0 {
            Verdict::Pass
        } else {
            Verdict::Deny {
                reason: "no shell command is understood yet".to_owned(),
            }
        })
    }
}
