//! `guard.commands { deny, ask, allow }`: which programs the agent's shell may run.
//!
//! The command text is parsed as a shell would, and every simple command in it is judged: in pipes, lists, loops,
//! functions and substitutions, behind `env`, `timeout` or `xargs`, and in the code of `sh -c` and `eval`. What cannot
//! be judged by reading is denied. It reads commands, not programs: what a script file or `python -c` does is the
//! sandbox's business.

mod bounds;
mod interpreter;
mod pattern;
mod walk;
mod word;
mod wrapper;

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::{Semaphore, oneshot};

use crate::diagnostic::{Diagnostic, Result};
use crate::event::verdict::{Stage, Verdict};
use crate::guard::commands::pattern::{Doubt, Pattern};
use crate::guard::commands::walk::{Found, show, walk};
use crate::guard::commands::word::Word;
use crate::guard::{Guard, Subject};

/// Judges every simple command of a shell call.
#[derive(Debug)]
pub struct Commands {
    rules: Arc<Rules>,
    /// One parse at a time: a text made to keep the parser busy must not be able to keep many threads busy.
    parser: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Rules {
    deny: Vec<Pattern>,
    ask: Vec<Pattern>,
    allow: Vec<Pattern>,
    /// Rules that are no patterns. Nothing passes while there is one.
    broken: Vec<String>,
}

impl Commands {
    /// The tool this guard judges, and the argument that holds the command.
    const TOOL: &'static str = "shell";
    const ARGUMENT: &'static str = "command";

    /// A guard with these patterns, e.g. `curl *`.
    pub fn new(deny: &[String], ask: &[String], allow: &[String]) -> Self {
        let mut rules = Rules::default();
        rules.deny = rules.parse(deny);
        rules.ask = rules.parse(ask);
        rules.allow = rules.parse(allow);
        Self { rules: Arc::new(rules), parser: Arc::new(Semaphore::new(1)) }
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

    async fn judge(&self, subject: &Subject<'_>) -> Result<Verdict> {
        let Subject::ToolCall { tool, arguments } = subject else {
            return Ok(Verdict::Pass);
        };
        if *tool != Self::TOOL || self.rules.is_empty() {
            return Ok(Verdict::Pass);
        }
        let Some(text) = arguments.get(Self::ARGUMENT).and_then(|value| value.as_str()) else {
            return Ok(deny(format!("the call has no text in `{}`", Self::ARGUMENT)));
        };
        if let Some(reason) = bounds::beyond(text) {
            return Ok(deny(reason));
        }
        self.parse_and_judge(text.to_owned()).await
    }
}

impl Commands {
    /// Parses on a thread of its own: it may recurse deeply, take long, or panic, and none of that may touch the run.
    async fn parse_and_judge(&self, text: String) -> Result<Verdict> {
        let Ok(permit) = Arc::clone(&self.parser).try_acquire_owned() else {
            return Ok(deny("an earlier command is still being parsed".to_owned()));
        };
        let rules = Arc::clone(&self.rules);
        let (sender, receiver) = oneshot::channel();
        std::thread::Builder::new()
            .name("guard-commands".to_owned())
            .stack_size(bounds::STACK)
            .spawn(move || {
                // When nobody waits any more the verdict is not needed.
                let _ = sender.send(rules.judge(&walk(&text)));
                drop(permit);
            })
            .map_err(|error| {
                Diagnostic::new("guard::thread", "no thread to parse the command").cause(error)
            })?;
        Ok(receiver
            .await
            .unwrap_or_else(|_| deny("the parser broke on this command; write it more simply".to_owned())))
    }
}

impl Rules {
    fn parse(&mut self, patterns: &[String]) -> Vec<Pattern> {
        let mut parsed = Vec::new();
        for text in patterns {
            match Pattern::parse(text) {
                Ok(pattern) => parsed.push(pattern),
                Err(problem) => self.broken.push(format!("the rule `{text}` {problem}")),
            }
        }
        parsed
    }

    fn is_empty(&self) -> bool {
        self.deny.is_empty() && self.ask.is_empty() && self.allow.is_empty() && self.broken.is_empty()
    }

    /// The strictest verdict over all commands: deny, then ask, then pass.
    fn judge(&self, found: &Found) -> Verdict {
        if let Some(broken) = self.broken.first() {
            return deny(format!("{broken}, so nothing can be allowed"));
        }
        for command in &found.commands {
            if let Some(rule) = matching(&self.deny, command, Doubt::Matches) {
                return deny(format!("the rule `{}` denies `{}`", rule.text, brief(command)));
            }
        }
        if let Some(unclear) = found.unclear.first() {
            return deny(format!(
                "the call holds {unclear}, and what cannot be read cannot be allowed; write program names and \
                 code out"
            ));
        }
        if !self.allow.is_empty() {
            let listed = |command: &Vec<Word>| {
                matching(&self.allow, command, Doubt::Differs).is_some()
                    || matching(&self.ask, command, Doubt::Matches).is_some()
            };
            if let Some(command) = found.commands.iter().find(|command| !listed(command)) {
                return deny(format!(
                    "no rule allows `{}`; allowed are: {}",
                    brief(command),
                    self.allow.iter().map(|rule| rule.text.as_str()).collect::<Vec<_>>().join(", ")
                ));
            }
        }
        for command in &found.commands {
            if let Some(rule) = matching(&self.ask, command, Doubt::Matches) {
                return Verdict::Ask {
                    reason: format!("the rule `{}` covers `{}`", rule.text, brief(command)),
                };
            }
        }
        Verdict::Pass
    }
}

fn matching<'a>(rules: &'a [Pattern], command: &[Word], doubt: Doubt) -> Option<&'a Pattern> {
    rules.iter().find(|rule| rule.matches(command, doubt))
}

fn deny(reason: String) -> Verdict {
    Verdict::Deny { reason }
}

/// The command, cut to a readable length.
fn brief(command: &[Word]) -> String {
    const LENGTH: usize = 120;
    let text = show(command);
    let mut cut: String = text.chars().take(LENGTH).collect();
    if cut.len() < text.len() {
        cut.push_str("...");
    }
    cut
}
