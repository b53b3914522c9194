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
        Self { server, done: Vec::new(), begun: Vec::new(), text: String::new(), last: None, model: None }
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
                self.begun.extend(object(event["item"].take()));
                deltas(Delta::Alive);
            }
            "response.output_item.done" => {
                self.done.extend(object(event["item"].take()));
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
            let more = event["delta"].as_str().unwrap_or_default();
            match &mut item["arguments"] {
                // In place: long arguments come in thousands of pieces.
                Value::String(whole) => whole.push_str(more),
                other => *other = Value::String(arguments(other) + more),
            }
        }
    }

    fn end(&mut self, response: Value) -> Result<(), ModelError> {
        if !response.is_object() {
            return Err(self.server.bad_answer(&response.to_string()));
        }
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
        Ok(Response { items, finish, usage, model: self.model.map(|model| self.server.redact(&model)) })
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
                let item = Item::Assistant { text: self.server.redact(&text) };
                (refused || !text.is_empty()).then_some((item, refused))
            }
            Some("function_call") => {
                let text = |name: &str| value[name].as_str().unwrap_or_default();
                let call = ToolCall {
                    id: Some(text("call_id")).filter(|id| !id.is_empty()).unwrap_or(text("id")).to_owned(),
                    tool: self.server.redact(text("name")),
                    arguments: self.server.redact(&arguments(&value["arguments"])),
                };
                Some((Item::Call(call), false))
            }
            Some(_) => {
                let item = Item::Verbatim { provider: PROVIDER.to_owned(), value };
                Some((item, false))
            }
            None => None,
        }
    }
}

/// What is no object is no item, and nothing can be put into it.
fn object(value: Value) -> Option<Value> {
    value.is_object().then_some(value)
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
    let counted = Usage {
        input_tokens: usage["input_tokens"].as_u64()?,
        cached_tokens: usage["input_tokens_details"]["cached_tokens"].as_u64().unwrap_or(0),
        output_tokens: usage["output_tokens"].as_u64().unwrap_or(0),
        reasoning_tokens: usage["output_tokens_details"]["reasoning_tokens"].as_u64().unwrap_or(0),
    };
    // Some servers send zeros where they do not count; that must not switch a budget off.
    (counted.total() > 0).then_some(counted)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::server::Settings;

    fn read(events: impl IntoIterator<Item = Value>) -> Result<Response, ModelError> {
        let server = Server::new(Settings::new("m", "http://localhost:1/v1")).expect("a server");
        let mut answer = Answer::new(&server);
        for event in events {
            answer.take(event, &|_| {})?;
        }
        answer.finish()
    }

    #[test]
    fn what_is_no_object_is_an_error_or_left_out() {
        for wrong in [json!("done"), json!([]), json!(1), Value::Null] {
            let error = read([json!({"type": "response.completed", "response": wrong})]);
            assert_eq!(error.expect_err("no response").diagnostic.code(), "model::bad_answer");
            let answer = read([
                json!({"type": "response.output_item.added", "item": wrong}),
                json!({"type": "response.function_call_arguments.delta", "delta": "{}"}),
                json!({"type": "response.output_item.done", "item": wrong}),
                json!({"type": "response.completed", "response": {}}),
            ]);
            assert_eq!(answer.expect("a response").items, []);
        }
    }

    #[test]
    fn pieces_are_put_together_where_no_item_is_whole() {
        let answer = read([
            json!({"type": "response.output_item.added", "item": {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "shell"}}),
            json!({"type": "response.function_call_arguments.delta", "item_id": "fc_1", "delta": "{\"a\":"}),
            json!({"type": "response.function_call_arguments.delta", "delta": "1}"}),
            json!({"type": "response.completed", "response": {"status": "completed"}}),
        ]);
        let answer = answer.expect("a response");
        let calls: Vec<_> = answer.calls().map(|call| (call.id.as_str(), call.arguments.as_str())).collect();
        assert_eq!(calls, [("c1", "{\"a\":1}")]);
    }
}
