//! The conversation between us and the model. Every tool call in it is answered exactly once, in order.

use crate::event::ToolCall;
use crate::model::{Item, Response};

/// What has been said so far, and counts over it.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    /// What the agent is told before everything else.
    pub instructions: String,
    /// What has been said.
    pub items: Vec<Item>,
    /// Turns taken.
    pub turn: u32,
    /// Tool calls a guardrail denied.
    pub denied: u32,
    /// The last of them: the guard and its reason.
    pub last_denial: Option<(String, String)>,
}

impl Conversation {
    /// Starts with a prompt.
    pub fn new(instructions: impl Into<String>, prompt: impl Into<String>) -> Self {
        let items = vec![Item::User { text: prompt.into() }];
        Self { instructions: instructions.into(), items, ..Self::default() }
    }

    /// Says something to the model.
    pub fn say(&mut self, text: impl Into<String>) {
        self.items.push(Item::User { text: text.into() });
    }

    /// Takes up what the model answered; gives its tool calls, which must all be answered next.
    pub fn hear(&mut self, response: Response) -> Vec<ToolCall> {
        let calls = response.calls().cloned().collect();
        self.items.extend(response.items);
        calls
    }

    /// Answers a tool call.
    pub fn answer(&mut self, call: &ToolCall, output: impl Into<String>) {
        self.items.push(Item::Output { call: call.id.clone(), output: output.into() });
    }
}
