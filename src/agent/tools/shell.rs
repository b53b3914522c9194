//! `shell`: a command in the sandbox.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::agent::tools::{Class, Given, Told, Tool, object, parse, told_or_failed};
use crate::diagnostic::Result;
use crate::event::ToolOutcome;
use crate::model::ToolSpec;
use crate::sandbox::{Command, Executed, Sandbox};
use crate::workflow::units::{show_duration, show_size};

/// Runs `sh -c COMMAND` in `/workspace`.
#[derive(Debug)]
pub struct Shell {
    sandbox: Arc<dyn Sandbox>,
    longest: Duration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    command: String,
    #[serde(default)]
    timeout_seconds: Option<u64>,
}

impl Shell {
    /// In this sandbox; no command runs longer than `longest`.
    pub fn new(sandbox: Arc<dyn Sandbox>, longest: Duration) -> Self {
        Self { sandbox, longest }
    }
}

#[async_trait]
impl Tool for Shell {
    fn spec(&self) -> ToolSpec {
        let longest = self.longest.as_secs();
        ToolSpec {
            name: "shell".to_owned(),
            description: format!(
                "Runs a command with `sh -c` in /workspace and gives its exit code and output. Each call is a new \
                 shell; files stay. Nothing it starts goes on after it. It is killed after timeout_seconds (null \
                 means {longest}, which is the most). Long output is cut in the middle: send what you need to a file \
                 and read parts of it. There is no network."
            ),
            parameters: object(&json!({
                "command": { "type": "string", "description": "The command line." },
                "timeout_seconds": { "type": ["integer", "null"], "minimum": 1, "description": "Killed after this many seconds." },
            })),
        }
    }

    fn check(&self, arguments: &Value) -> Result<(), String> {
        let arguments: Arguments = parse(arguments)?;
        if arguments.command.trim().is_empty() {
            return Err("`command` is empty".to_owned());
        }
        if arguments.command.contains('\0') {
            return Err("`command` holds a NUL character".to_owned());
        }
        Ok(())
    }

    fn class(&self) -> Class {
        Class::Sandboxed
    }

    async fn call(&self, arguments: &Value, given: Given) -> Result<Told> {
        let arguments: Arguments = match parse(arguments) {
            Ok(arguments) => arguments,
            Err(complaint) => return Ok(Told::of(ToolOutcome::Failed, complaint)),
        };
        let asked =
            arguments.timeout_seconds.map_or(self.longest, |seconds| Duration::from_secs(seconds.max(1)));
        let timeout = asked.min(self.longest).min(given.left);
        let command = Command { argv: vec!["sh".into(), "-c".into(), arguments.command], timeout };
        let done = match given.process {
            Some(id) => self.sandbox.exec_as(id, &command).await,
            None => self.sandbox.exec(&command).await,
        };
        match done {
            Ok(executed) => Ok(tell(executed, timeout, self.sandbox.isolation().memory_bytes)),
            Err(error) => told_or_failed(error),
        }
    }
}

/// Exit first, then what it printed, with what is left out said where it is left out.
fn tell(executed: Executed, timeout: Duration, memory: u64) -> Told {
    let mut text = match executed.exit {
        _ if executed.timed_out => format!("killed after its timeout of {}", show_duration(timeout)),
        Some(code) => format!("exit code {code} after {}", show_duration(executed.took)),
        None => "ended without an exit code".to_owned(),
    };
    if executed.out_of_memory > 0 {
        let limit = show_size(memory);
        let _ = write!(
            text,
            ", killed: out of memory (limits.memory is {limit}, and files in /workspace and /tmp count as well)"
        );
    }
    let output = &executed.output;
    if output.total == 0 {
        text.push_str(", no output");
    } else {
        text.push('\n');
        text.push_str(&String::from_utf8_lossy(&output.head));
        if output.hidden() > 0 {
            let _ = write!(
                text,
                "\n[... {} of {} ({} lines in all) are left out here ...]\n",
                show_size(output.hidden()),
                show_size(output.total),
                output.lines
            );
        }
        text.push_str(&String::from_utf8_lossy(&output.tail));
    }
    let outcome = if executed.timed_out { ToolOutcome::TimedOut } else { ToolOutcome::Done };
    Told { outcome, output: text, whole: executed.output.whole, held: executed.held }
}
