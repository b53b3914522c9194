//! Going on where an earlier host ended.

use crate::agent::budget::Budget;
use crate::agent::conversation::Conversation;
use crate::agent::recall::{Closing, Place};
use crate::agent::{Agent, Ended};
use crate::diagnostic::Result;
use crate::event::said::Occasion;
use crate::event::usage::Usage;
use crate::model::estimate_tokens;

/// From where an agent goes on.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// Where it stood.
    pub place: Place,
    /// The most tokens a lost call may have used.
    pub lost: Option<u64>,
    /// What it must know before it goes on: what it did and is gone.
    pub loss: Option<String>,
}

impl Start {
    /// From the place where the model is asked, with nothing to make good.
    pub fn asking() -> Self {
        Self { place: Place::Asks, lost: None, loss: None }
    }
}

impl Agent<'_> {
    /// Does what is left of an interrupted turn, and works on.
    pub async fn resume(
        &self,
        start: Start,
        conversation: &mut Conversation,
        budget: &mut Budget,
    ) -> Result<Ended> {
        if let Some(tokens) = start.lost {
            self.book_lost(tokens, conversation, budget).await?;
        }
        match start.place {
            Place::Asks => {}
            // An answer about files that are gone is none.
            Place::Heard(heard) if heard.calls.is_empty() && start.loss.is_some() => {}
            Place::Heard(heard) => {
                let turn = self.follow(heard, conversation).await?;
                if let Some(ended) = self.after(turn, conversation, budget).await? {
                    return Ok(ended);
                }
            }
            Place::Limited(limit, Closing::Untold) => {
                return self.ask_to_close(conversation, budget, limit).await;
            }
            Place::Limited(limit, Closing::Told) => {
                return self.hear_the_end(conversation, budget, limit).await;
            }
            Place::Limited(limit, Closing::Heard) => return Ok(Ended::Exhausted(limit)),
        }
        if let Some(loss) = start.loss {
            self.say(conversation, Occasion::Loss, &loss).await?;
        }
        self.work(conversation, budget).await
    }

    /// A call was made, and its answer never came: it may have cost all that was set aside for it.
    async fn book_lost(&self, tokens: u64, conversation: &Conversation, budget: &mut Budget) -> Result<()> {
        let input_tokens = estimate_tokens(&self.request(conversation, self.tools.specs())).min(tokens);
        let usage = Usage { input_tokens, output_tokens: tokens - input_tokens, ..Usage::default() };
        self.book_cut(conversation.turn + 1, usage, budget).await
    }
}
