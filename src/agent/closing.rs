//! The closing turn: at a limit the model may say where it got to, without tools.

use crate::agent::budget::{Budget, Limit, Share};
use crate::agent::conversation::Conversation;
use crate::agent::deadline::Cut;
use crate::agent::respond::{Reply, Time};
use crate::agent::{Agent, Ended};
use crate::diagnostic::Result;
use crate::event::What;
use crate::event::said::Occasion;

impl Agent<'_> {
    /// Records the limit, lets the model close, and ends.
    pub(crate) async fn close(
        &self,
        conversation: &mut Conversation,
        budget: &mut Budget,
        limit: Limit,
    ) -> Result<Ended> {
        let (name, reason) = (limit.name.to_owned(), limit.reason.clone());
        self.journal.append(What::LimitReached { limit: name, reason }).await?;
        self.ask_to_close(conversation, budget, limit).await
    }

    /// Tells the model that it ends here, and hears it.
    pub(crate) async fn ask_to_close(
        &self,
        conversation: &mut Conversation,
        budget: &mut Budget,
        limit: Limit,
    ) -> Result<Ended> {
        let words = format!(
            "The run ends here: {}. You cannot use tools any more. Say shortly what is done, what is not, and what you \
             found.",
            limit.reason
        );
        self.say(conversation, Occasion::Closing, &words).await?;
        self.hear_the_end(conversation, budget, limit).await
    }

    /// Hears the model's last words. A closing turn that fails changes nothing.
    pub(crate) async fn hear_the_end(
        &self,
        conversation: &mut Conversation,
        budget: &mut Budget,
        limit: Limit,
    ) -> Result<Ended> {
        let request = self.request(conversation, &[]);
        let Ok(reserved) = budget.reserve(crate::model::estimate_tokens(&request), None, Share::Closing)
        else {
            return Ok(Ended::Exhausted(limit));
        };
        conversation.turn += 1;
        let turn = conversation.turn;
        self.announce(conversation, &reserved).await?;
        let request = crate::model::Request {
            max_output_tokens: reserved.max_output_tokens,
            ..self.request(conversation, &[])
        };
        match self.respond(turn, &request, Time::Closing, budget).await {
            Ok(Reply::Response(response, took)) => {
                self.book(turn, &request, &response, took, budget).await?;
                conversation.items.extend(response.items);
            }
            Ok(Reply::Cut(Cut::Stopped)) => return Ok(Ended::Stopped),
            Ok(Reply::Cut(Cut::Wall)) => {}
            Err(diagnostic) => {
                self.journal.append(What::Warned { report: diagnostic.report() }).await?;
            }
        }
        Ok(Ended::Exhausted(limit))
    }
}
