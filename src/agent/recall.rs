//! What an agent had done when its host ended, told from the log alone.
//!
//! A pure fold: the same events always give the same conversation, byte for byte the one the model saw. What was
//! answered is not asked again, and a call that has ended is not carried out again.

use crate::agent::budget::Limit;
use crate::agent::conversation::{Begun, Conversation, Due, Heard};
use crate::diagnostic::{Diagnostic, Result};
use crate::event::finish::Finish;
use crate::event::payload::Payload;
use crate::event::said::Occasion;
use crate::event::usage::Usage;
use crate::event::verdict::{Stage, Verdict};
use crate::event::{Event, ToolCall, ToolOutcome, What};
use crate::model::Item;

/// What can be told of an agent from its log.
#[derive(Debug, Clone, PartialEq)]
pub struct Recalled {
    /// All that was said; nothing when the prompt was not ready.
    pub conversation: Option<Conversation>,
    /// All tokens that are booked.
    pub used: Usage,
    /// Where it stands.
    pub place: Place,
    /// The most tokens a call may have used that was made and neither answered nor booked.
    pub lost: Option<u64>,
    /// What was set aside for the last call.
    reserved: Option<u64>,
}

/// Where an agent stands.
#[derive(Debug, Clone, PartialEq)]
pub enum Place {
    /// The model is to be asked.
    Asks,
    /// The model has answered, and not all is done that follows from it.
    Heard(Heard),
    /// A limit was reached.
    Limited(Limit, Closing),
}

/// How far the closing turn has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closing {
    /// The model was not told.
    Untold,
    /// It was told, and has not answered.
    Told,
    /// It has answered.
    Heard,
}

impl Recalled {
    /// Folds a run's events, in order. Their payloads must be whole: see [`texts`].
    pub fn of(instructions: &str, events: &[Event]) -> Result<Self> {
        let place = Place::Asks;
        let mut recalled =
            Self { conversation: None, used: Usage::default(), place, lost: None, reserved: None };
        let mut denial = None;
        for event in events {
            recalled.take(instructions, &event.what, &mut denial)?;
        }
        Ok(recalled)
    }

    fn take(&mut self, instructions: &str, what: &What, denial: &mut Option<(String, String)>) -> Result<()> {
        if let What::PromptReady { prompt, .. } = what {
            // Runs of earlier versions started over: what was said before counts no more.
            self.conversation = Some(Conversation::new(instructions, whole(prompt)?));
            self.place = Place::Asks;
        }
        if let What::ModelResponded { usage, .. } | What::ModelCut { usage, .. } = what {
            self.used += *usage;
            self.lost = None;
        }
        let Some(conversation) = &mut self.conversation else { return Ok(()) };
        match what {
            What::ModelRequested { reserved_tokens, .. } => {
                self.reserved = Some(*reserved_tokens);
                self.lost = self.reserved;
            }
            // The next try is made with the same.
            What::ModelRetried { .. } => self.lost = self.reserved,
            What::ModelResponded { turn, text, calls, items, finish, .. } => {
                conversation.turn = *turn;
                conversation.items.extend(answer(text, calls, items)?);
                self.place = match std::mem::replace(&mut self.place, Place::Asks) {
                    Place::Limited(limit, _) => Place::Limited(limit, Closing::Heard),
                    Place::Asks | Place::Heard(_) => Place::Heard(heard(text, calls, *finish)?),
                };
            }
            What::Said { occasion, text } => {
                conversation.say(*occasion, whole(text)?);
                match (&mut self.place, occasion) {
                    (Place::Limited(_, closing), Occasion::Closing) => *closing = Closing::Told,
                    (place, _) => *place = Place::Asks,
                }
            }
            What::ToolStarted { call, process, .. } => {
                if let Some(due) = self.place.due(&call.id) {
                    due.begun = Begun::Yes(*process);
                }
            }
            What::GuardrailChecked {
                stage: Stage::ToolCall,
                guard,
                verdict: Verdict::Deny { reason } | Verdict::Ask { reason },
            } => *denial = Some((guard.clone(), reason.clone())),
            What::ToolEnded { id, output, outcome, .. } => {
                conversation.items.push(Item::Output { call: id.clone(), output: whole(output)? });
                if *outcome == ToolOutcome::Denied {
                    conversation.denied += 1;
                    conversation.last_denial = denial.take();
                }
                self.place.ended(id, conversation);
            }
            What::LimitReached { limit, reason } => {
                if let Some(limit) = Limit::recalled(limit, reason) {
                    self.place = Place::Limited(limit, Closing::Untold);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl Place {
    /// The call of that id, when it is to be answered.
    fn due(&mut self, id: &str) -> Option<&mut Due> {
        match self {
            Self::Heard(heard) => heard.calls.iter_mut().find(|due| due.call.id == id),
            Self::Asks | Self::Limited(..) => None,
        }
    }

    /// The call of that id was answered; after the last one the model is asked.
    fn ended(&mut self, id: &str, conversation: &mut Conversation) {
        let Self::Heard(heard) = self else { return };
        heard.calls.retain(|due| due.call.id != id);
        if heard.calls.is_empty() {
            conversation.silent = 0;
            *self = Self::Asks;
        }
    }
}

/// The texts of an event that make up the conversation: whoever recalls a run puts the whole in place of those that
/// were kept elsewhere.
pub fn texts(what: &mut What) -> Vec<&mut Payload> {
    match what {
        What::PromptReady { prompt, .. } => vec![prompt],
        What::ModelResponded { text, items, .. } => vec![text, items],
        What::Said { text, .. } => vec![text],
        What::ToolEnded { output, .. } => vec![output],
        _ => Vec::new(),
    }
}

fn whole(payload: &Payload) -> Result<String> {
    match payload {
        Payload::Inline(text) => Ok(text.clone()),
        Payload::Blob { digest, .. } => Err(unreadable(&format!("the text {} was not read", digest.short()))),
    }
}

fn heard(text: &Payload, calls: &[ToolCall], finish: Finish) -> Result<Heard> {
    let calls = calls.iter().map(|call| Due { call: call.clone(), begun: Begun::No }).collect();
    Ok(Heard { text: whole(text)?, finish, calls })
}

/// The items of an answer. Earlier versions did not keep them; what they kept makes the same conversation, without
/// what only the provider understands.
fn answer(text: &Payload, calls: &[ToolCall], items: &Payload) -> Result<Vec<Item>> {
    let (text, items) = (whole(text)?, whole(items)?);
    if !items.is_empty() {
        return serde_json::from_str(&items).map_err(|error| unreadable(&error.to_string()));
    }
    let said = (!text.is_empty() || calls.is_empty()).then_some(Item::Assistant { text });
    Ok(said.into_iter().chain(calls.iter().cloned().map(Item::Call)).collect())
}

fn unreadable(why: &str) -> Diagnostic {
    Diagnostic::new(
        "run::unreadable_log",
        format!("what the model saw cannot be read from the run's log: {why}"),
    )
    .help("the files in .tidemill were changed or are damaged; drop the input again")
}
