//! Carrying out the tool calls of a turn. Each is answered exactly once, whatever happens.

use std::time::Duration;

use crate::agent::budget::Limit;
use crate::agent::conversation::{Begun, Conversation, Due};
use crate::agent::deadline::Cut;
use crate::agent::tools::{Class, Effect, Given, Told};
use crate::agent::turn::Turn;
use crate::agent::{Agent, Continuity};
use crate::diagnostic::{Diagnostic, Result};
use crate::event::{ToolCall, ToolOutcome, What};
use crate::guard::{Outcome, Subject};
use crate::model::Finish;

/// How a call begins.
enum Beginning {
    /// It is carried out, as the command of this id.
    Goes(Option<u32>),
    /// It had begun, and went away with its sandbox.
    Interrupted,
}

impl Agent<'_> {
    /// Carries the calls out one after another.
    pub(crate) async fn carry_out(
        &self,
        calls: &[Due],
        finish: Finish,
        conversation: &mut Conversation,
    ) -> Result<Turn> {
        let turn = conversation.turn;
        let mut cut = None;
        let mut effect = Effect::Looks;
        for due in calls {
            let start = self.clock.elapsed();
            let told = match (cut, due.begun) {
                (None, Begun::No) if turn >= self.max_turns => not_carried_out("all turns are used."),
                (Some(reason), Begun::No) => not_carried_out(why(reason)),
                (Some(reason), Begun::Yes(_)) => cut_off(reason),
                (None, begun) => {
                    if self.tools.effect(&due.call.tool) == Effect::Changes {
                        effect = Effect::Changes;
                    }
                    match self.begin(&due.call, begun, turn).await? {
                        Beginning::Interrupted => interrupted(),
                        Beginning::Goes(process) => {
                            // A command ends by itself when the time for work is over, so that nothing of it runs on;
                            // what does not end then is cut with the time kept back.
                            let calling = self.guarded_call(&due.call, finish, process, conversation);
                            self.deadline.race_closing(calling).await.unwrap_or_else(|reason| {
                                cut = Some(reason);
                                Ok(cut_off(reason))
                            })?
                        }
                    }
                }
            };
            let took = self.clock.elapsed().saturating_sub(start);
            self.answer(&due.call, told, took, conversation).await?;
        }
        // One that was stopped is looked at when its sandbox goes away.
        if effect == Effect::Changes && cut.is_none() {
            self.keeper.keep(turn).await?;
        }
        Ok(match cut {
            None => Turn::Used,
            Some(Cut::Wall) => Turn::Limit(Limit::wall(self.deadline.wall())),
            Some(Cut::Stopped) => Turn::Stopped,
        })
    }

    /// Records what a call came to and tells it. Only then may the sandbox forget the call.
    async fn answer(
        &self,
        call: &ToolCall,
        told: Told,
        took: Duration,
        conversation: &mut Conversation,
    ) -> Result<()> {
        let Told { outcome, output, whole, held } = told;
        let whole = match whole {
            Some(file) => Some(self.journal.keep(file.path()).await?),
            None => None,
        };
        // What the model is told is what the log says it was told.
        let told = self.journal.clean(&output);
        let output = self.journal.payload(&told).await?;
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let (turn, id) = (conversation.turn, call.id.clone());
        self.journal.append(What::ToolEnded { turn, id, output, whole, outcome, millis }).await?;
        drop(held);
        conversation.answer(call, told);
        Ok(())
    }

    /// Begins a call, or finds out what becomes of one that an earlier host began.
    async fn begin(&self, call: &ToolCall, begun: Begun, turn: u32) -> Result<Beginning> {
        let process = match (begun, self.tools.class(&call.tool)) {
            (Begun::No, class) => {
                // Chosen before the command exists: whoever finds this event can ask the sandbox for it.
                let process = (class == Class::Sandboxed).then(|| fastrand::u32(..));
                self.journal.append(What::ToolStarted { turn, call: call.clone(), process }).await?;
                process
            }
            (Begun::Yes(Some(process)), Class::Sandboxed) if self.continuity == Continuity::Same => {
                Some(process)
            }
            (Begun::Yes(_), Class::Sandboxed) => return Ok(Beginning::Interrupted),
            (Begun::Yes(_), Class::Once) => return Err(once_interrupted(call)),
            (Begun::Yes(_), Class::Repeatable) => None,
        };
        Ok(Beginning::Goes(process))
    }

    /// One call past its guardrails, before and after.
    async fn guarded_call(
        &self,
        call: &ToolCall,
        finish: Finish,
        process: Option<u32>,
        conversation: &mut Conversation,
    ) -> Result<Told> {
        let arguments = match self.tools.arguments(call, finish) {
            Ok(arguments) => arguments,
            Err(complaint) => return Ok(Told::of(ToolOutcome::Failed, complaint)),
        };
        let subject = Subject::ToolCall { tool: &call.tool, arguments: &arguments };
        let arguments = match self.judge(subject).await? {
            Outcome::Pass => arguments,
            Outcome::Replaced(with) => {
                match self.tools.arguments(&ToolCall { arguments: with, ..call.clone() }, Finish::Stop) {
                    Ok(arguments) => arguments,
                    Err(complaint) => return Ok(Told::of(ToolOutcome::Failed, complaint)),
                }
            }
            Outcome::Denied { guard, reason } => return Ok(denied(conversation, guard, reason)),
        };
        let given = Given { left: self.deadline.left(), process };
        let told = self.tools.call(&call.tool, &arguments, given).await?;
        Ok(match self.judge(Subject::ToolOutput { tool: &call.tool, output: &told.output }).await? {
            Outcome::Pass => told,
            // The whole output holds what the guard took out.
            Outcome::Replaced(output) => Told { output, whole: None, ..told },
            Outcome::Denied { guard, reason } => {
                let output = format!("The output is withheld by guardrail `{guard}`: {reason}");
                Told { outcome: ToolOutcome::Withheld, output, whole: None, ..told }
            }
        })
    }
}

fn denied(conversation: &mut Conversation, guard: String, reason: String) -> Told {
    let output = format!("Denied by guardrail `{guard}`: {reason}");
    conversation.denied += 1;
    conversation.last_denial = Some((guard, reason));
    Told::of(ToolOutcome::Denied, output)
}

fn not_carried_out(why: &str) -> Told {
    Told::of(ToolOutcome::NotCarriedOut, format!("Not carried out: {why}"))
}

fn cut_off(reason: Cut) -> Told {
    let outcome = match reason {
        Cut::Wall => ToolOutcome::TimedOut,
        Cut::Stopped => ToolOutcome::Stopped,
    };
    Told::of(outcome, format!("Stopped: {}", why(reason)))
}

fn interrupted() -> Told {
    let output = "Interrupted: the sandbox was lost while this ran, with all it had done. Run it again if it is still \
                  needed.";
    Told::of(ToolOutcome::Interrupted, output.to_owned())
}

fn once_interrupted(call: &ToolCall) -> Diagnostic {
    let message = format!("the call of `{}` was interrupted, and nobody knows how far it came", call.tool);
    Diagnostic::new("agent::once_interrupted", message).help(format!(
        "it must not happen twice: look whether it had its effect (its arguments: {}), then drop the input again if \
         the work is still to be done",
        call.arguments.trim()
    ))
}

/// Why a call was cut short, for the model and for the log.
fn why(cut: Cut) -> &'static str {
    match cut {
        Cut::Wall => "the run's time is over.",
        Cut::Stopped => "the run was stopped.",
    }
}
