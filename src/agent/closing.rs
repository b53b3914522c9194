//! The closing turn: at a limit the model may say where it got to, without tools.

use crate::agent::budget::{Budget, Limit, Share};
use crate::agent::conversation::Conversation;
use crate::agent::deadline::Cut;
use crate::agent::respond::{Reply, Time};
use crate::agent::{Agent, Ended};
use crate::diagnostic::Result;
use crate::event::What;

impl Agent<'_> {
    /// Records the limit, lets the model close, and ends. A closing turn that fails changes nothing.
    pub(crate) async fn close(
        &self,
        conversation: &mut Conversation,
        budget: &mut Budget,
        limit: Limit,
    ) -> Result<Ended> {
        let reason = limit.reason.clone();
        self.journal
            .append(What::LimitReached { limit: limit.name.to_owned(), reason: reason.clone() })
            .await?;
        conversation.say(format!(
            "The run ends here: {reason}. You cannot use tools any more. Say shortly what is done, what is not, \
             and what you found."
        ));
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
