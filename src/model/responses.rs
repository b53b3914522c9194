//! OpenAI's Responses: what is asked. How the answer is read stands in `answer`.

mod answer;

use async_openai::types::responses::{CreateResponse, FunctionTool, IncludeEnum, Tool};
use async_trait::async_trait;
use serde_json::{Value, json};

use self::answer::Answer;
use super::calls::{finish_by_length, make_ids_unique, sendable, sendable_name};
use super::server::{Server, Settings, never};
use super::{Delta, Item, Model, ModelError, Request, Response, ToolSpec};
use crate::diagnostic::{Diagnostic, Result};

/// Whose reasoning items these are.
const PROVIDER: &str = "openai";

/// A model asked over Responses.
///
/// Nothing is stored at the provider (`store: false`), so its reasoning comes encrypted and goes back word for word.
#[derive(Debug)]
pub struct Responses {
    server: Server,
}

impl Responses {
    /// The model that `settings` say. Nothing is sent yet.
    pub fn new(settings: Settings) -> Result<Self> {
        Ok(Self { server: Server::new(settings)? })
    }

    fn body(&self, request: &Request<'_>) -> Result<Value, ModelError> {
        let envelope = CreateResponse {
            model: Some(self.server.model().to_owned()),
            instructions: Some(request.instructions.to_owned()).filter(|text| !text.is_empty()),
            max_output_tokens: self.server.limit(request.max_output_tokens),
            store: Some(false),
            stream: Some(true),
            include: Some(vec![IncludeEnum::ReasoningEncryptedContent]),
            tools: Some(request.tools.iter().map(tool).collect()).filter(|tools: &Vec<_>| !tools.is_empty()),
            ..CreateResponse::default()
        };
        let mut body = serde_json::to_value(envelope).map_err(|error| {
            let message = format!("the request to model `{}` cannot be written as JSON", self.server.name());
            never(Diagnostic::new("model::bad_request", message).cause(error))
        })?;
        // The typed items would lose what they do not know of a reasoning item.
        body["input"] = inputs(request.items);
        Ok(body)
    }
}

#[async_trait]
impl Model for Responses {
    fn name(&self) -> &str {
        self.server.name()
    }

    async fn respond(
        &self,
        request: &Request<'_>,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Response, ModelError> {
        let body = self.body(request)?;
        let mut feed = self.server.ask("/responses", &body).await?;
        let mut answer = Answer::new(&self.server);
        while !answer.is_complete() {
            match feed.next().await? {
                Some(event) => answer.take(event, deltas)?,
                None => break,
            }
        }
        let mut response = answer.finish()?;
        feed.close().await;
        make_ids_unique(&mut response.items, request);
        let limit = self.server.limit(request.max_output_tokens);
        response.finish = finish_by_length(response.finish, response.usage, limit);
        Ok(response)
    }
}

fn tool(spec: &ToolSpec) -> Tool {
    Tool::Function(FunctionTool {
        name: spec.name.clone(),
        description: Some(spec.description.clone()),
        parameters: Some(spec.parameters.clone()),
        strict: Some(true),
        ..FunctionTool::default()
    })
}

/// The conversation as input items.
///
/// OpenAI refuses a conversation with reasoning that nothing from the model follows, as a turn leaves it that was cut
/// while it reasoned; others refuse reasoning that holds nothing.
fn inputs(items: &[Item]) -> Value {
    let sent = |(index, item): (usize, &Item)| match item {
        Item::Verbatim { value, .. } if value["type"] == "reasoning" => {
            let useful = holds_reasoning(value) && is_followed(&items[index + 1..]);
            useful.then(|| input(item)).flatten()
        }
        _ => input(item),
    };
    items.iter().enumerate().filter_map(sent).collect()
}

/// Whether a reasoning item can be read back: encrypted, or in the open.
fn holds_reasoning(item: &Value) -> bool {
    let encrypted = item["encrypted_content"].as_str().is_some_and(|text| !text.is_empty());
    encrypted || item["content"].as_array().is_some_and(|parts| !parts.is_empty())
}

/// Whether the same turn goes on with a text or a call.
fn is_followed(rest: &[Item]) -> bool {
    let empty = |item: &&Item| match item {
        Item::Assistant { text } => text.is_empty(),
        Item::Verbatim { .. } => true,
        _ => false,
    };
    let next = rest.iter().find(|item| !empty(item));
    matches!(next, Some(Item::Assistant { .. } | Item::Call(_)))
}

fn input(item: &Item) -> Option<Value> {
    Some(match item {
        Item::User { text } => json!({
            "type": "message",
            "role": "user",
            "content": [{ "type": "input_text", "text": text }],
        }),
        Item::Assistant { text } if text.is_empty() => return None,
        Item::Assistant { text } => json!({
            "type": "message",
            "role": "assistant",
            "content": [{ "type": "output_text", "text": text }],
        }),
        Item::Call(call) => json!({
            "type": "function_call",
            "call_id": call.id,
            "name": sendable_name(&call.tool),
            "arguments": sendable(&call.arguments),
        }),
        Item::Output { call, output } => json!({
            "type": "function_call_output",
            "call_id": call,
            "output": output,
        }),
        Item::Verbatim { provider, value } if provider == PROVIDER => value.clone(),
        Item::Verbatim { .. } => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reasoning(encrypted: &str) -> Item {
        Item::Verbatim {
            provider: PROVIDER.to_owned(),
            value: json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": encrypted}),
        }
    }

    fn text(text: &str) -> Item {
        Item::Assistant { text: text.to_owned() }
    }

    fn nudge() -> Item {
        Item::User { text: "go on".to_owned() }
    }

    fn sent(items: &[Item]) -> Vec<Value> {
        let inputs = inputs(items);
        let inputs = inputs.as_array().into_iter().flatten();
        inputs.map(|input| input["type"].clone()).collect()
    }

    #[test]
    fn reasoning_goes_back_word_for_word_with_what_follows_it() {
        let items = [reasoning("gAAA"), reasoning("gBBB"), text("done")];
        assert_eq!(sent(&items), ["reasoning", "reasoning", "message"]);
        assert_eq!(
            inputs(&items)[0],
            json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"})
        );
    }

    #[test]
    fn reasoning_that_leads_nowhere_or_holds_nothing_stays_here() {
        assert_eq!(sent(&[reasoning("gAAA"), nudge(), text("done")]), ["message", "message"]);
        assert_eq!(sent(&[reasoning("gAAA"), text(""), nudge()]), ["message"]);
        assert_eq!(sent(&[reasoning(""), text("done")]), ["message"]);
        assert_eq!(sent(&[reasoning("gAAA")]), [] as [&str; 0]);
    }
}
