//! What is replied: an answer or an error, and how it comes over the wire.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::{Value, json};

use super::Protocol;

#[path = "chat.rs"]
mod chat;
#[path = "responses.rs"]
mod responses;

/// One reply.
#[derive(Debug, Clone)]
pub struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) ending: Ending,
    /// How long it takes from the request to the last byte.
    pub(super) over: Duration,
    /// Set when its last byte is written.
    pub(super) sent: Option<Arc<AtomicBool>>,
    content: Content,
    framing: Framing,
    split: Option<usize>,
}

/// A body in the pieces it is sent in.
pub(super) struct Body {
    pub content_type: &'static str,
    pub chunks: Vec<Vec<u8>>,
}

#[derive(Debug, Clone)]
enum Content {
    Answer(Box<Answer>),
    Raw(&'static str, Vec<u8>),
    /// Messages as they are, framed like an answer.
    Messages(Vec<Value>),
    Nothing,
}

/// What a model says.
#[derive(Debug, Clone)]
struct Answer {
    text: String,
    calls: Vec<(String, String)>,
    /// A reasoning item (Responses) or its text (Chat).
    reasoning: Option<Value>,
    refusal: Option<String>,
    usage: Option<[u64; 4]>,
    finish: Option<String>,
    habits: Habits,
}

/// How a server deviates.
#[derive(Debug, Clone, Default)]
struct Habits {
    ids: Ids,
    /// What ids of its own begin with, in place of one count for all answers.
    prefix: Option<String>,
    indexes: Indexes,
    /// As llama.cpp: what can be left out is left out.
    bare: bool,
}

/// Which ids calls get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ids {
    /// Each its own, `call_` and a number that goes on.
    #[default]
    Own,
    /// None.
    Missing,
    /// Every call the same.
    Same,
}

/// Which indexes streamed calls get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Indexes {
    /// From 0 up.
    #[default]
    Own,
    /// None.
    Missing,
    /// Always 0.
    Zero,
}

/// How messages are put in a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Sse,
    Lines,
    Whole,
}

/// How a reply ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Whole,
    CutAfter(usize),
    StallAfter(usize),
    CloseAfter,
}

impl Reply {
    fn new(content: Content) -> Self {
        Self {
            status: 200,
            headers: Vec::new(),
            ending: Ending::Whole,
            over: Duration::ZERO,
            sent: None,
            content,
            framing: Framing::Sse,
            split: None,
        }
    }

    /// Says `text`. An empty text is an empty answer.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(Content::Answer(Box::new(Answer {
            text: text.into(),
            calls: Vec::new(),
            reasoning: None,
            refusal: None,
            usage: Some([10, 4, 5, 2]),
            finish: None,
            habits: Habits::default(),
        })))
    }

    /// Asks for tools. Arguments that are a text are sent as that text, JSON or not.
    pub fn calls<'a>(calls: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        Self::text("").answer(|answer| {
            answer.calls = calls
                .into_iter()
                .map(|(tool, arguments)| match arguments {
                    Value::String(text) => (tool.to_owned(), text),
                    other => (tool.to_owned(), other.to_string()),
                })
                .collect();
        })
    }

    /// A status and a body.
    #[expect(clippy::needless_pass_by_value, reason = "called with a literal")]
    pub fn error(status: u16, body: Value) -> Self {
        let mut reply = Self::new(Content::Raw("application/json", body.to_string().into_bytes()));
        reply.status = status;
        reply
    }

    /// A body that is whatever it is.
    pub fn raw(content_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self::new(Content::Raw(content_type, body.into()))
    }

    /// Messages that are whatever they are, framed as an answer is.
    pub fn messages(messages: impl IntoIterator<Item = Value>) -> Self {
        Self::new(Content::Messages(messages.into_iter().collect()))
    }

    /// Closes the connection without a word.
    pub fn close() -> Self {
        Self::new(Content::Nothing)
    }

    /// Also says `text`.
    pub fn saying(self, text: &str) -> Self {
        self.answer(|answer| text.clone_into(&mut answer.text))
    }

    /// Comes after reasoning: an item for Responses, a text for Chat.
    pub fn reasoning(self, reasoning: Value) -> Self {
        self.answer(|answer| answer.reasoning = Some(reasoning))
    }

    /// Refuses.
    pub fn refusing(self, refusal: &str) -> Self {
        self.answer(|answer| answer.refusal = Some(refusal.to_owned()))
    }

    /// Tokens read, of these cached, written, of these reasoning.
    pub fn usage(self, usage: [u64; 4]) -> Self {
        self.answer(|answer| answer.usage = Some(usage))
    }

    /// Does not count.
    pub fn without_usage(self) -> Self {
        self.answer(|answer| answer.usage = None)
    }

    /// Ends for this reason: `stop`, `length`, `content_filter`, as Chat Completions names them.
    pub fn finish(self, reason: &str) -> Self {
        self.answer(|answer| answer.finish = Some(reason.to_owned()))
    }

    /// Gives calls such ids.
    pub fn ids(self, ids: Ids) -> Self {
        self.answer(|answer| answer.habits.ids = ids)
    }

    /// Gives calls the ids `PREFIX-0`, `PREFIX-1`, ...: the same answer twice has the same ids twice.
    #[allow(dead_code, reason = "only the crash test has answers like this")]
    pub fn ids_of(self, prefix: &str) -> Self {
        self.answer(|answer| answer.habits.prefix = Some(prefix.to_owned()))
    }

    /// Takes so long, evenly over its chunks.
    #[allow(dead_code, reason = "only the crash test has answers like this")]
    pub fn over(mut self, time: Duration) -> Self {
        self.over = time;
        self
    }

    /// Sets `sent` when its last byte is written.
    #[allow(dead_code, reason = "only the crash test has answers like this")]
    pub fn tells(mut self, sent: Arc<AtomicBool>) -> Self {
        self.sent = Some(sent);
        self
    }

    /// Gives streamed calls such indexes.
    pub fn indexes(self, indexes: Indexes) -> Self {
        self.answer(|answer| answer.habits.indexes = indexes)
    }

    /// Leaves out what llama.cpp leaves out.
    pub fn bare(self) -> Self {
        self.answer(|answer| answer.habits.bare = true)
    }

    /// With a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// One message per line instead of server-sent events.
    pub fn lines(mut self) -> Self {
        self.framing = Framing::Lines;
        self
    }

    /// One document, though a stream was asked for.
    pub fn whole(mut self) -> Self {
        self.framing = Framing::Whole;
        self
    }

    /// In chunks of so many bytes, wherever they cut.
    pub fn split_every(mut self, bytes: usize) -> Self {
        self.split = Some(bytes.max(1));
        self
    }

    /// The connection is closed after so many bytes.
    pub fn cut_after(mut self, bytes: usize) -> Self {
        self.ending = Ending::CutAfter(bytes);
        self
    }

    /// Nothing comes after so many bytes.
    pub fn stall_after(mut self, bytes: usize) -> Self {
        self.ending = Ending::StallAfter(bytes);
        self
    }

    /// The connection looks kept, and is closed when the next request comes.
    pub fn close_after(mut self) -> Self {
        self.ending = Ending::CloseAfter;
        self
    }

    fn answer(mut self, change: impl FnOnce(&mut Answer)) -> Self {
        if let Content::Answer(answer) = &mut self.content {
            change(answer);
        }
        self
    }

    /// The body as it goes out; `None` closes the connection.
    pub(super) fn body(&self, protocol: Protocol, streamed: bool) -> Option<Body> {
        let framing = if streamed { self.framing } else { Framing::Whole };
        let messages = match &self.content {
            Content::Nothing => return None,
            Content::Raw(content_type, bytes) => {
                return Some(Body { content_type, chunks: self.pieces(vec![bytes.clone()]) });
            }
            Content::Messages(messages) => messages.clone(),
            Content::Answer(answer) => match (protocol, framing) {
                (Protocol::Chat, Framing::Whole) => vec![chat::whole(answer)],
                (Protocol::Chat, _) => chat::chunks(answer),
                (Protocol::Responses, Framing::Whole) => vec![responses::whole(answer)],
                (Protocol::Responses, _) => responses::events(answer),
            },
        };
        let (content_type, mut chunks): (_, Vec<_>) = match framing {
            Framing::Sse => ("text/event-stream", messages.iter().map(event).collect()),
            Framing::Lines => (
                "application/x-ndjson",
                messages.iter().map(|message| format!("{message}\n").into_bytes()).collect(),
            ),
            Framing::Whole => (
                "application/json",
                messages.iter().map(|message| message.to_string().into_bytes()).collect(),
            ),
        };
        if framing == Framing::Sse && protocol == Protocol::Chat {
            chunks.push(b"data: [DONE]\n\n".to_vec());
        }
        Some(Body { content_type, chunks: self.pieces(chunks) })
    }

    fn pieces(&self, chunks: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        match self.split {
            None => chunks,
            Some(bytes) => chunks.concat().chunks(bytes).map(<[u8]>::to_vec).collect(),
        }
    }
}

fn event(message: &Value) -> Vec<u8> {
    let name = message["type"].as_str();
    let name = name.map_or_else(String::new, |name| format!("event: {name}\n"));
    format!("{name}data: {message}\n\n").into_bytes()
}

impl Answer {
    /// The calls with the ids they get: id, tool, arguments.
    fn identified(&self) -> Vec<(Option<String>, &str, &str)> {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = |number: usize| match (self.habits.ids, &self.habits.prefix) {
            (Ids::Own, Some(prefix)) => Some(format!("{prefix}-{number}")),
            (Ids::Own, None) => Some(format!("call_{}", NEXT.fetch_add(1, Ordering::Relaxed))),
            (Ids::Missing, _) => None,
            (Ids::Same, _) => Some("call_0".to_owned()),
        };
        let calls = self.calls.iter().enumerate();
        calls.map(|(number, (tool, arguments))| (id(number), tool.as_str(), arguments.as_str())).collect()
    }

    /// Why it stopped, in the words of Chat Completions.
    fn reason(&self) -> &str {
        match &self.finish {
            Some(reason) => reason,
            None if self.calls.is_empty() => "stop",
            None => "tool_calls",
        }
    }

    /// A text in pieces of a few characters, as models write.
    fn pieces(text: &str) -> Vec<String> {
        let characters: Vec<_> = text.chars().collect();
        characters.chunks(7).map(|piece| piece.iter().collect()).collect()
    }
}

/// Removes what is null.
fn without_nulls(mut object: Value) -> Value {
    if let Some(map) = object.as_object_mut() {
        map.retain(|_, value| !value.is_null());
    }
    object
}

/// The name every answer says it is from.
fn model() -> Value {
    json!("wire-1")
}
