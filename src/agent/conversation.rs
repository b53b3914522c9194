//! The conversation between us and the model. Every tool call in it is answered exactly once, in order.

use crate::event::ToolCall;
use crate::event::said::Occasion;
use crate::model::{Finish, Item, Response};

/// What the model has said last, and what follows from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Heard {
    /// What it said to people; may be empty.
    pub text: String,
    /// Why it stopped.
    pub finish: Finish,
    /// What it asks for, in order.
    pub calls: Vec<Due>,
}

/// A tool call that is to be answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Due {
    /// The call.
    pub call: ToolCall,
    /// How far it has come.
    pub begun: Begun,
}

/// How far a tool call has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begun {
    /// Nothing has been done.
    No,
    /// An earlier host began it; a command has this id in its sandbox.
    Yes(Option<u32>),
}

/// What has been said so far, and counts over it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conversation {
    /// What the agent is told before everything else.
    pub instructions: String,
    /// What has been said.
    pub items: Vec<Item>,
    /// Turns taken.
    pub turn: u32,
    /// Tool calls a guardrail denied.
    pub denied: u32,
    /// Empty answers one after another.
    pub silent: u32,
    /// The last denial: the guard and its reason.
    pub last_denial: Option<(String, String)>,
}

impl Conversation {
    /// Starts with a prompt.
    pub fn new(instructions: impl Into<String>, prompt: impl Into<String>) -> Self {
        let items = vec![Item::User { text: prompt.into() }];
        Self { instructions: instructions.into(), items, ..Self::default() }
    }

    /// Says something to the model.
    pub fn say(&mut self, occasion: Occasion, text: impl Into<String>) {
        match occasion {
            Occasion::Silence => self.silent += 1,
            // From here on it may be silent as often as at the beginning.
            Occasion::Length | Occasion::Findings => self.silent = 0,
            Occasion::Closing | Occasion::Loss => {}
        }
        self.items.push(Item::User { text: text.into() });
    }

    /// Takes up what the model answered; its tool calls must all be answered next.
    pub fn hear(&mut self, response: Response) -> Heard {
        let calls = response.calls().map(|call| Due { call: call.clone(), begun: Begun::No }).collect();
        let heard = Heard { text: response.text(), finish: response.finish, calls };
        self.items.extend(response.items);
        heard
    }

    /// Answers a tool call.
    pub fn answer(&mut self, call: &ToolCall, output: impl Into<String>) {
        self.items.push(Item::Output { call: call.id.clone(), output: output.into() });
    }
}
