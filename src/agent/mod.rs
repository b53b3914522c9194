//! Turns, tools, budget and conversation: the loop that lets a model work.
//!
//! The loop runs on the host. Each turn reserves its budget, asks the model, and carries out the tool calls it
//! asks for, each one past the guardrails. It ends with an answer, at a limit, by a guardrail, or when it is stopped.

pub mod budget;
pub mod calls;
pub mod closing;
pub mod conversation;
pub mod deadline;
pub mod recall;
pub mod respond;
pub mod resume;
pub mod tools;
pub mod turn;

use async_trait::async_trait;
use std::path::Path;

use crate::agent::budget::{Budget, Limit};
use crate::agent::conversation::Conversation;
use crate::agent::deadline::Deadline;
use crate::agent::tools::Toolbox;
use crate::agent::turn::Turn;
use crate::clock::Clock;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::What;
use crate::event::payload::Payload;
use crate::event::said::Occasion;
use crate::guard::{Outcome, Pipeline, Subject};
use crate::model::Model;

/// Where events go. Implemented by `run`, which redacts secrets and appends to the store.
#[async_trait]
pub trait Journal: Send + Sync {
    /// Appends an event. Nothing that follows from it may happen before this returns.
    async fn append(&self, what: What) -> Result<()>;

    /// Text without secrets, as it may be recorded and told to a model.
    fn clean(&self, text: &str) -> String;

    /// Makes text fit for an event.
    async fn payload(&self, text: &str) -> Result<Payload>;

    /// Keeps a file's content and names it.
    async fn keep(&self, file: &Path) -> Result<Payload>;
}

/// Keeps the workspace as it is, so that it outlives its sandbox. Implemented by `run`.
#[async_trait]
pub trait Keeper: Send + Sync {
    /// Keeps it after the tool calls of a turn. What cannot be kept is a warning in the log, not an error.
    async fn keep(&self, turn: u32) -> Result<()>;
}

/// Whether the sandbox is the one in which an earlier host's calls began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Continuity {
    /// It is, and what they began may still run.
    Same,
    /// It is another one.
    New,
}

/// Everything an agent works with.
#[derive(Clone, Copy)]
pub struct Agent<'a> {
    /// What it thinks with.
    pub model: &'a dyn Model,
    /// What it may use.
    pub tools: &'a Toolbox,
    /// What is checked before each step.
    pub guards: &'a Pipeline,
    /// Where events go.
    pub journal: &'a dyn Journal,
    /// Who keeps the workspace.
    pub keeper: &'a dyn Keeper,
    /// Whether calls that began before can be followed.
    pub continuity: Continuity,
    /// Where time comes from.
    pub clock: &'a dyn Clock,
    /// When it must be done, and whether it was stopped.
    pub deadline: &'a Deadline,
    /// Turns at most, repairs included.
    pub max_turns: u32,
    /// Tokens it may write per answer, where the project sets that.
    pub max_output_tokens: Option<u64>,
}

/// How the agent's work ended.
#[derive(Debug)]
pub enum Ended {
    /// It gave a final answer, which passed its guardrails.
    Answered(String),
    /// A limit was reached; the closing turn is done.
    Exhausted(Limit),
    /// A guardrail stopped the run.
    Denied {
        /// Which.
        guard: String,
        /// Why.
        reason: String,
    },
    /// A person or the end of the process stopped it.
    Stopped,
}

impl Agent<'_> {
    /// Turns without text and without tool calls that are met with a nudge; one more ends the run.
    const SILENT_TURNS: u32 = 2;
    /// Denied tool calls that are told to the model; one more ends the run.
    const DENIED_CALLS: u32 = 5;

    /// Works until there is an answer or a reason to stop.
    pub async fn work(&self, conversation: &mut Conversation, budget: &mut Budget) -> Result<Ended> {
        loop {
            if conversation.denied > Self::DENIED_CALLS {
                let (guard, reason) = conversation.last_denial.take().unwrap_or_default();
                let reason = format!("{} tool calls were denied; the last: {reason}", conversation.denied);
                return Ok(Ended::Denied { guard, reason });
            }
            if conversation.turn >= self.max_turns {
                let limit = Limit::turns(self.max_turns);
                return self.close(conversation, budget, limit).await;
            }
            let turn = self.turn(conversation, budget).await?;
            if let Some(ended) = self.after(turn, conversation, budget).await? {
                return Ok(ended);
            }
        }
    }

    /// What a turn means for the work: nothing when it goes on.
    async fn after(
        &self,
        turn: Turn,
        conversation: &mut Conversation,
        budget: &mut Budget,
    ) -> Result<Option<Ended>> {
        match turn {
            Turn::Used => conversation.silent = 0,
            Turn::Answered(text) => return self.judge_answer(text).await.map(Some),
            Turn::Silent if conversation.silent < Self::SILENT_TURNS => {
                let nudge =
                    "Your last answer was empty. Use a tool to go on, or say in words that you are done.";
                self.say(conversation, Occasion::Silence, nudge).await?;
            }
            Turn::Silent => return Err(gone_silent(self.model.name(), conversation.silent + 1)),
            Turn::Limit(limit) => return self.close(conversation, budget, limit).await.map(Some),
            Turn::Stopped => return Ok(Some(Ended::Stopped)),
        }
        Ok(None)
    }

    /// Says something to the model, on the record.
    pub async fn say(&self, conversation: &mut Conversation, occasion: Occasion, text: &str) -> Result<()> {
        let text = self.journal.clean(text);
        let said = self.journal.payload(&text).await?;
        self.journal.append(What::Said { occasion, text: said }).await?;
        conversation.say(occasion, text);
        Ok(())
    }

    async fn judge_answer(&self, text: String) -> Result<Ended> {
        Ok(match self.judge(Subject::Answer { text: &text }).await? {
            Outcome::Pass => Ended::Answered(text),
            Outcome::Replaced(with) => Ended::Answered(with),
            Outcome::Denied { guard, reason } => Ended::Denied { guard, reason },
        })
    }

    /// Asks the guards and records what they say. A guard that cannot judge ends the run.
    async fn judge(&self, subject: Subject<'_>) -> Result<Outcome> {
        let stage = subject.stage();
        let judgement = self.guards.judge(subject).await;
        for (guard, verdict) in judgement.verdicts {
            self.journal.append(What::GuardrailChecked { stage, guard, verdict }).await?;
        }
        match judgement.broken {
            Some(diagnostic) => Err(diagnostic),
            None => Ok(judgement.outcome),
        }
    }
}

fn gone_silent(model: &str, turns: u32) -> Diagnostic {
    Diagnostic::new("agent::silent", format!("model `{model}` gave {turns} empty answers one after another"))
        .help("a smaller prompt or another model often helps; `tidemill logs RUN` shows each turn")
}
