//! OpenAI's Responses: what is asked. How the answer is read stands in `answer`.

mod answer;

use async_openai::types::responses::{CreateResponse, FunctionTool, IncludeEnum, Tool};
use async_trait::async_trait;
use serde_json::{Value, json};

use self::answer::Answer;
use super::calls::{finish_by_length, make_ids_unique, sendable};
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
        Ok(Self {
            server: Server::new(settings)?,
        })
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
            let message = format!(
                "the request to model `{}` cannot be written as JSON",
                self.server.name()
            );
            never(Diagnostic::new("model::bad_request", message).cause(error))
        })?;
        // The typed items would lose what they do not know of a reasoning item.
        body["input"] = request.items.iter().filter_map(input).collect();
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
            "name": call.tool,
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
