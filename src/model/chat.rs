//! Chat Completions, as OpenAI and the many compatible servers speak it: what is asked. How the answer is read stands
//! in `answer`.

mod answer;

use async_openai::types::chat::{
    ChatCompletionMessageToolCall, ChatCompletionMessageToolCalls, ChatCompletionRequestAssistantMessage,
    ChatCompletionRequestMessage, ChatCompletionRequestSystemMessage, ChatCompletionRequestToolMessage,
    ChatCompletionRequestUserMessage, ChatCompletionStreamOptions, ChatCompletionTool, ChatCompletionTools,
    CreateChatCompletionRequest, FunctionCall, FunctionObject,
};
use async_trait::async_trait;

use self::answer::Answer;
use super::calls::{finish_by_length, make_ids_unique, sendable, sendable_name};
use super::server::{Server, Settings};
use super::{Delta, Item, Model, ModelError, Request, Response, ToolSpec};
use crate::diagnostic::Result;

/// A model asked over Chat Completions.
#[derive(Debug)]
pub struct Chat {
    server: Server,
}

impl Chat {
    /// The model that `settings` say. Nothing is sent yet.
    pub fn new(settings: Settings) -> Result<Self> {
        Ok(Self { server: Server::new(settings)? })
    }

    fn body(&self, request: &Request<'_>) -> CreateChatCompletionRequest {
        let limit = self.server.limit(request.max_output_tokens);
        // OpenAI's newer models know only the one name, most other servers only the other.
        let (max_completion_tokens, max_tokens) =
            if self.server.is_openai() { (limit, None) } else { (None, limit) };
        let tools: Vec<_> = request.tools.iter().map(|spec| self.tool(spec)).collect();
        #[expect(deprecated, reason = "`max_tokens` is what most compatible servers know")]
        CreateChatCompletionRequest {
            model: self.server.model().to_owned(),
            messages: messages(request),
            max_completion_tokens,
            max_tokens,
            stream: Some(true),
            stream_options: Some(ChatCompletionStreamOptions {
                include_usage: Some(true),
                include_obfuscation: None,
            }),
            tools: Some(tools).filter(|tools| !tools.is_empty()),
            ..CreateChatCompletionRequest::default()
        }
    }

    fn tool(&self, spec: &ToolSpec) -> ChatCompletionTools {
        ChatCompletionTools::Function(ChatCompletionTool {
            function: FunctionObject {
                name: spec.name.clone(),
                description: Some(spec.description.clone()),
                parameters: Some(spec.parameters.clone()),
                strict: self.server.is_openai().then_some(true),
            },
        })
    }
}

#[async_trait]
impl Model for Chat {
    fn name(&self) -> &str {
        self.server.name()
    }

    async fn respond(
        &self,
        request: &Request<'_>,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Response, ModelError> {
        let body = self.body(request);
        let mut feed = self.server.ask("/chat/completions", &body).await?;
        let mut answer = Answer::new(&self.server);
        loop {
            match feed.next().await {
                Ok(Some(chunk)) => answer.take(&chunk, deltas),
                Ok(None) => break,
                // A server may close hard once it has said why it stopped: only the usage is lost.
                Err(error)
                    if answer.is_complete()
                        && matches!(error.diagnostic.code(), "model::cut_stream" | "model::stalled") =>
                {
                    break;
                }
                Err(error) => return Err(error),
            }
            if answer.is_complete() {
                feed.hurry();
            }
        }
        if !answer.is_complete() && !feed.said_done() {
            return Err(self.server.cut(""));
        }
        feed.close().await;
        let mut response = answer.finish();
        make_ids_unique(&mut response.items, request);
        let limit = self.server.limit(request.max_output_tokens);
        response.finish = finish_by_length(response.finish, response.usage, limit);
        Ok(response)
    }
}

/// The conversation as messages: what the model said and asked for in one turn is one message.
fn messages(request: &Request<'_>) -> Vec<ChatCompletionRequestMessage> {
    let mut messages = Vec::new();
    if !request.instructions.is_empty() {
        messages.push(ChatCompletionRequestSystemMessage::from(request.instructions).into());
    }
    let mut turn = Turn::default();
    for item in request.items {
        match item {
            Item::Assistant { text } => turn.texts.push(text),
            Item::Call(call) => {
                turn.calls.push(ChatCompletionMessageToolCalls::Function(ChatCompletionMessageToolCall {
                    id: call.id.clone(),
                    function: FunctionCall {
                        name: sendable_name(&call.tool),
                        arguments: sendable(&call.arguments),
                    },
                }));
            }
            Item::User { text } => {
                turn.end(&mut messages);
                messages.push(ChatCompletionRequestUserMessage::from(text.as_str()).into());
            }
            Item::Output { call, output } => {
                turn.end(&mut messages);
                let message = ChatCompletionRequestToolMessage {
                    content: output.as_str().into(),
                    tool_call_id: call.clone(),
                };
                messages.push(message.into());
            }
            Item::Verbatim { .. } => {}
        }
    }
    turn.end(&mut messages);
    messages
}

/// What the model said and asked for since we last said something.
#[derive(Default)]
struct Turn<'a> {
    texts: Vec<&'a str>,
    calls: Vec<ChatCompletionMessageToolCalls>,
}

impl Turn<'_> {
    fn end(&mut self, messages: &mut Vec<ChatCompletionRequestMessage>) {
        let text = std::mem::take(&mut self.texts).join("\n");
        let calls = std::mem::take(&mut self.calls);
        if text.is_empty() && calls.is_empty() {
            return;
        }
        let message = ChatCompletionRequestAssistantMessage {
            content: Some(text).filter(|text| !text.is_empty()).map(Into::into),
            tool_calls: Some(calls).filter(|calls| !calls.is_empty()),
            ..ChatCompletionRequestAssistantMessage::default()
        };
        messages.push(message.into());
    }
}
