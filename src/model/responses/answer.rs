//! OpenAI's Responses: how the answer is read, event by event or whole.
//!
//! Whole items (`response.output_item.done`, or the output of the final event) count; pieces are only put together
//! where a server sends neither.

use serde_json::Value;

use super::PROVIDER;
use crate::event::ToolCall;
use crate::event::usage::Usage;
use crate::model::calls::arguments;
use crate::model::failure::{self, Words};
use crate::model::server::Server;
use crate::model::{Delta, Finish, Item, ModelError, Response};

/// An answer in the making.
pub(super) struct Answer<'a> {
    server: &'a Server,
    /// Items that are done, in order.
    done: Vec<Value>,
    /// Calls that have begun.
    begun: Vec<Value>,
    /// Text so far.
    text: String,
    /// The final word: the whole response.
    last: Option<Value>,
    model: Option<String>,
}

impl<'a> Answer<'a> {
    pub fn new(server: &'a Server) -> Self {
        Self {
            server,
            done: Vec::new(),
            begun: Vec::new(),
            text: String::new(),
            last: None,
            model: None,
        }
    }

    pub fn is_complete(&self) -> bool {
        self.last.is_some()
    }

    /// Takes the next event, or a whole response from a server that does not stream.
    pub fn take(
        &mut self,
        mut event: Value,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<(), ModelError> {
        if let Some(model) = event["response"]["model"].as_str() {
            self.model = Some(model.to_owned());
        }
        let kind = event["type"].as_str().unwrap_or_default().to_owned();
        match kind.as_str() {
            "response.output_text.delta" => {
                let text = event["delta"].as_str().unwrap_or_default();
                self.text.push_str(text);
                deltas(Delta::Text(self.server.redact(text)));
            }
            "response.output_item.added" => {
                self.begun.push(event["item"].take());
                deltas(Delta::Alive);
            }
            "response.output_item.done" => {
                self.done.push(event["item"].take());
                deltas(Delta::Alive);
            }
            "response.function_call_arguments.delta" => {
                self.grow(&event);
                deltas(Delta::Alive);
            }
            "response.completed" | "response.incomplete" | "response.failed" | "response.done" => {
                self.end(event["response"].take())?;
            }
            "" if event["object"] == "response" || event["output"].is_array() => self.end(event)?,
            _ => deltas(Delta::Alive),
        }
        Ok(())
    }

    fn grow(&mut self, event: &Value) {
        let place = self
            .begun
            .iter()
            .rposition(|item| item["id"].is_string() && item["id"] == event["item_id"])
            .or(self.begun.len().checked_sub(1));
        if let Some(item) = place.and_then(|place| self.begun.get_mut(place)) {
            let mut whole = arguments(&item["arguments"]);
            whole.push_str(event["delta"].as_str().unwrap_or_default());
            item["arguments"] = Value::String(whole);
        }
    }

    fn end(&mut self, response: Value) -> Result<(), ModelError> {
        if let Some(words) = Words::find(&response) {
            return Err(failure::of_message(self.server, &words));
        }
        if response["status"] == "failed" {
            return Err(failure::of_message(self.server, &Words::default()));
        }
        if let Some(model) = response["model"].as_str() {
            self.model = Some(model.to_owned());
        }
        self.last = Some(response);
        Ok(())
    }

    /// The answer as a whole; an error when the server never said that it was over.
    pub fn finish(mut self) -> Result<Response, ModelError> {
        let Some(mut last) = self.last.take() else {
            return Err(self.server.cut(""));
        };
        let mut finish = finish(&last);
        let usage = usage(&last["usage"]);
        let output = match last["output"].take() {
            Value::Array(output) if output.len() >= self.done.len() && !output.is_empty() => output,
            _ if self.done.is_empty() => std::mem::take(&mut self.begun),
            _ => std::mem::take(&mut self.done),
        };
        let mut items = Vec::new();
        for value in output {
            if let Some((item, refused)) = self.item(value) {
                items.push(item);
                if refused {
                    finish = Finish::Refused;
                }
            }
        }
        let has_text = items.iter().any(|item| matches!(item, Item::Assistant { .. }));
        if !has_text && !self.text.is_empty() {
            let text = self.server.redact(&self.text);
            let calls = items.iter().position(|item| matches!(item, Item::Call(_)));
            items.insert(calls.unwrap_or(items.len()), Item::Assistant { text });
        }
        Ok(Response {
            items,
            finish,
            usage,
            model: self.model.map(|model| self.server.redact(&model)),
        })
    }

    /// One item of the output, and whether it says that the model refused. Items without any text say nothing.
    fn item(&self, value: Value) -> Option<(Item, bool)> {
        match value["type"].as_str() {
            Some("message") => {
                let mut text = String::new();
                let mut refused = false;
                for part in value["content"].as_array().into_iter().flatten() {
                    text.push_str(part["text"].as_str().unwrap_or_default());
                    if let Some(refusal) = part["refusal"].as_str() {
                        text.push_str(refusal);
                        refused = true;
                    }
                }
                text.push_str(value["content"].as_str().unwrap_or_default());
                let item = Item::Assistant {
                    text: self.server.redact(&text),
                };
                (refused || !text.is_empty()).then_some((item, refused))
            }
            Some("function_call") => {
                let text = |name: &str| value[name].as_str().unwrap_or_default();
                let call = ToolCall {
                    id: Some(text("call_id"))
                        .filter(|id| !id.is_empty())
                        .unwrap_or(text("id"))
                        .to_owned(),
                    tool: self.server.redact(text("name")),
                    arguments: self.server.redact(&arguments(&value["arguments"])),
                };
                Some((Item::Call(call), false))
            }
            Some(_) => {
                let item = Item::Verbatim {
                    provider: PROVIDER.to_owned(),
                    value,
                };
                Some((item, false))
            }
            None => None,
        }
    }
}

fn finish(response: &Value) -> Finish {
    match response["incomplete_details"]["reason"].as_str() {
        Some("content_filter") => Finish::Refused,
        Some(_) => Finish::Length,
        None if response["status"] == "incomplete" => Finish::Length,
        None => Finish::Stop,
    }
}

fn usage(usage: &Value) -> Option<Usage> {
    Some(Usage {
        input_tokens: usage["input_tokens"].as_u64()?,
        cached_tokens: usage["input_tokens_details"]["cached_tokens"]
            .as_u64()
            .unwrap_or(0),
        output_tokens: usage["output_tokens"].as_u64().unwrap_or(0),
        reasoning_tokens: usage["output_tokens_details"]["reasoning_tokens"]
            .as_u64()
            .unwrap_or(0),
    })
}
