//! One turn: reserve, ask, and do what follows from the answer.

use std::time::Duration;

use crate::agent::Agent;
use crate::agent::budget::{Budget, Limit, Reserved, Share};
use crate::agent::conversation::{Conversation, Heard};
use crate::agent::deadline::Cut;
use crate::agent::respond::{Reply, Time};
use crate::diagnostic::{Diagnostic, Result};
use crate::event::What;
use crate::event::said::Occasion;
use crate::event::usage::Usage;
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
        let heard = conversation.hear(response);
        self.follow(heard, conversation).await
    }

    /// What follows from an answer: its tool calls, a word of ours, or the end of the work.
    pub(crate) async fn follow(&self, heard: Heard, conversation: &mut Conversation) -> Result<Turn> {
        let Heard { text, finish, calls } = heard;
        if !calls.is_empty() {
            return self.carry_out(&calls, finish, conversation).await;
        }
        Ok(match text.trim() {
            _ if finish == Finish::Refused => return Err(refused(self.model.name(), text.trim())),
            "" => Turn::Silent,
            // An answer cut at its limit is not an answer; it goes on where it stopped.
            _ if finish == Finish::Length => {
                let go_on = "Your answer was cut at its length limit. Go on from there.";
                self.say(conversation, Occasion::Length, go_on).await?;
                Turn::Used
            }
            _ => Turn::Answered(text),
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
        let items = serde_json::to_string(&response.items).map_err(|error| {
            Diagnostic::new("run::event", format!("the model's answer cannot be written as JSON: {error}"))
        })?;
        let items = self.journal.payload(&items).await?;
        let calls = response.calls().cloned().collect();
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let (finish, model) = (response.finish, response.model.clone());
        let what = What::ModelResponded { turn, text, calls, items, finish, usage, cost, millis, model };
        self.journal.append(what).await
    }
}

fn refused(model: &str, text: &str) -> Diagnostic {
    let said = if text.is_empty() { String::new() } else { format!(": {text}") };
    Diagnostic::new("model::refused", format!("model `{model}` refused to answer{said}"))
        .help("change the prompt or the input, or use another model")
}
