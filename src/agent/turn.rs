//! One turn: reserve, ask, and carry out what the model asks for.

use std::time::Duration;

use crate::agent::Agent;
use crate::agent::budget::{Budget, Limit, Reserved, Share};
use crate::agent::conversation::Conversation;
use crate::agent::deadline::Cut;
use crate::agent::respond::{Reply, Time};
use crate::agent::tools::Told;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::usage::Usage;
use crate::event::{ToolCall, ToolOutcome, What};
use crate::guard::{Outcome, Subject};
use crate::model::{Finish, Request, Response, ToolSpec, estimate_tokens};

/// What a turn came to.
pub(crate) enum Turn {
    /// Tools were used; the conversation goes on.
    Used,
    /// The model said something and asked for no tool.
    Answered(String),
    /// The model said nothing and asked for nothing.
    Silent,
    /// A limit forbids the turn or cut it.
    Limit(Limit),
    /// A stop came from outside.
    Stopped,
}

impl Agent<'_> {
    pub(crate) async fn turn(&self, conversation: &mut Conversation, budget: &mut Budget) -> Result<Turn> {
        if self.deadline.left().is_zero() {
            return Ok(Turn::Limit(Limit::wall(self.deadline.wall())));
        }
        let request = self.request(conversation, self.tools.specs());
        let wanted = self.max_output_tokens;
        let reserved = match budget.reserve(estimate_tokens(&request), wanted, Share::Work) {
            Ok(reserved) => reserved,
            Err(limit) => return Ok(Turn::Limit(limit)),
        };
        conversation.turn += 1;
        let turn = conversation.turn;
        self.announce(conversation, &reserved).await?;
        let request = Request {
            max_output_tokens: reserved.max_output_tokens,
            ..self.request(conversation, self.tools.specs())
        };
        let (response, took) = match self.respond(turn, &request, Time::Work, budget).await? {
            Reply::Response(response, took) => (response, took),
            Reply::Cut(Cut::Wall) => return Ok(Turn::Limit(Limit::wall(self.deadline.wall()))),
            Reply::Cut(Cut::Stopped) => return Ok(Turn::Stopped),
        };
        self.book(turn, &request, &response, took, budget).await?;
        let (text, finish) = (response.text(), response.finish);
        let calls = conversation.hear(response);
        if calls.is_empty() {
            return Ok(match text.trim() {
                _ if finish == Finish::Refused => return Err(refused(self.model.name(), text.trim())),
                "" => Turn::Silent,
                // An answer cut at its limit is not an answer; it goes on where it stopped.
                _ if finish == Finish::Length => {
                    conversation.say("Your answer was cut at its length limit. Go on from there.");
                    Turn::Used
                }
                _ => Turn::Answered(text),
            });
        }
        self.carry_out(turn, &calls, finish, conversation).await
    }

    /// Carries out the calls one after another. Each is answered, whatever happens.
    async fn carry_out(
        &self,
        turn: u32,
        calls: &[ToolCall],
        finish: Finish,
        conversation: &mut Conversation,
    ) -> Result<Turn> {
        let mut cut = None;
        for call in calls {
            if turn >= self.max_turns {
                conversation.answer(call, "Not carried out: all turns are used.");
                continue;
            }
            if let Some(reason) = cut {
                conversation.answer(call, format!("Not carried out: {}", why(reason)));
                continue;
            }
            self.journal.append(What::ToolStarted { turn, call: call.clone() }).await?;
            let start = self.clock.elapsed();
            // A command ends by itself when the time for work is over, so that nothing of it runs on; what does not
            // end then is cut with the time kept back.
            let told = match self.deadline.race_closing(self.guarded_call(call, finish, conversation)).await {
                Ok(told) => told?,
                Err(reason) => {
                    cut = Some(reason);
                    let outcome = match reason {
                        Cut::Wall => ToolOutcome::TimedOut,
                        Cut::Stopped => ToolOutcome::Stopped,
                    };
                    Told::of(outcome, format!("Stopped: {}", why(reason)))
                }
            };
            let millis =
                u64::try_from(self.clock.elapsed().saturating_sub(start).as_millis()).unwrap_or(u64::MAX);
            let whole = match &told.whole {
                Some(file) => Some(self.journal.keep(file.path()).await?),
                None => None,
            };
            let output = self.journal.payload(&told.output).await?;
            let outcome = told.outcome;
            self.journal
                .append(What::ToolEnded { turn, id: call.id.clone(), output, whole, outcome, millis })
                .await?;
            conversation.answer(call, told.output);
        }
        Ok(match cut {
            None => Turn::Used,
            Some(Cut::Wall) => Turn::Limit(Limit::wall(self.deadline.wall())),
            Some(Cut::Stopped) => Turn::Stopped,
        })
    }

    /// One call past its guardrails, before and after.
    async fn guarded_call(
        &self,
        call: &ToolCall,
        finish: Finish,
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
        let told = self.tools.call(&call.tool, &arguments, self.deadline.left()).await?;
        Ok(match self.judge(Subject::ToolOutput { tool: &call.tool, output: &told.output }).await? {
            Outcome::Pass => told,
            // The whole output holds what the guard took out.
            Outcome::Replaced(output) => Told { output, whole: None, ..told },
            Outcome::Denied { guard, reason } => {
                let output = format!("The output is withheld by guardrail `{guard}`: {reason}");
                Told::of(ToolOutcome::Withheld, output)
            }
        })
    }

    pub(crate) fn request<'a>(&self, conversation: &'a Conversation, tools: &'a [ToolSpec]) -> Request<'a> {
        Request {
            instructions: &conversation.instructions,
            items: &conversation.items,
            tools,
            max_output_tokens: self.max_output_tokens,
        }
    }

    pub(crate) async fn announce(&self, conversation: &Conversation, reserved: &Reserved) -> Result<()> {
        let what = What::ModelRequested {
            turn: conversation.turn,
            items: conversation.items.len() as u64,
            reserved_usd: reserved.cost,
            reserved_tokens: reserved.tokens,
        };
        self.journal.append(what).await
    }

    /// Books what the call used, as counted by the server or else estimated.
    pub(crate) async fn book(
        &self,
        turn: u32,
        request: &Request<'_>,
        response: &Response,
        took: Duration,
        budget: &mut Budget,
    ) -> Result<()> {
        let usage = response.usage.unwrap_or_else(|| Usage {
            input_tokens: estimate_tokens(request),
            output_tokens: estimate_tokens(&Request {
                instructions: "",
                items: &response.items,
                tools: &[],
                max_output_tokens: None,
            }),
            ..Usage::default()
        });
        let cost = budget.settle(usage);
        let text = self.journal.payload(&response.text()).await?;
        let calls = response.calls().cloned().collect();
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let model = response.model.clone();
        self.journal.append(What::ModelResponded { turn, text, calls, usage, cost, millis, model }).await
    }
}

fn refused(model: &str, text: &str) -> Diagnostic {
    let said = if text.is_empty() { String::new() } else { format!(": {text}") };
    Diagnostic::new("model::refused", format!("model `{model}` refused to answer{said}"))
        .help("change the prompt or the input, or use another model")
}

fn denied(conversation: &mut Conversation, guard: String, reason: String) -> Told {
    let output = format!("Denied by guardrail `{guard}`: {reason}");
    conversation.denied += 1;
    conversation.last_denial = Some((guard, reason));
    Told::of(ToolOutcome::Denied, output)
}

/// Why a call was cut short, for the model and for the log.
fn why(cut: Cut) -> &'static str {
    match cut {
        Cut::Wall => "the run's time is over.",
        Cut::Stopped => "the run was stopped.",
    }
}
