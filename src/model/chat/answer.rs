//! Chat Completions: how the answer is read, chunk by chunk or whole.

use serde_json::Value;

use super::super::calls::arguments;
use crate::event::ToolCall;
use crate::event::usage::Usage;
use crate::model::server::Server;
use crate::model::{Delta, Finish, Item, Response};

/// An answer in the making.
pub(super) struct Answer<'a> {
    server: &'a Server,
    text: String,
    refusal: String,
    calls: Vec<Draft>,
    reason: Option<String>,
    usage: Option<Usage>,
    model: Option<String>,
}

/// A call in the making.
#[derive(Debug, Default)]
struct Draft {
    index: Option<u64>,
    id: String,
    tool: String,
    arguments: String,
}

impl Draft {
    /// Whether nothing can follow: the arguments are a whole document.
    fn is_whole(&self) -> bool {
        serde_json::from_str::<Value>(&self.arguments).is_ok()
    }
}

impl<'a> Answer<'a> {
    pub fn new(server: &'a Server) -> Self {
        Self {
            server,
            text: String::new(),
            refusal: String::new(),
            calls: Vec::new(),
            reason: None,
            usage: None,
            model: None,
        }
    }

    /// Whether the server has said why it stopped.
    pub fn is_complete(&self) -> bool {
        self.reason.is_some()
    }

    /// Takes the next chunk, or a whole completion from a server that does not stream.
    pub fn take(&mut self, chunk: &Value, deltas: &(dyn Fn(Delta) + Send + Sync)) {
        if let Some(model) = chunk["model"].as_str().filter(|model| !model.is_empty()) {
            self.model = Some(model.to_owned());
        }
        self.usage = usage(&chunk["usage"]).or(self.usage);
        let choice = &chunk["choices"][0];
        let said = match &choice["delta"] {
            Value::Object(_) => &choice["delta"],
            _ => &choice["message"],
        };
        let text = text(&said["content"]);
        if text.is_empty() {
            deltas(Delta::Alive);
        } else {
            self.text.push_str(&text);
            deltas(Delta::Text(self.server.redact(&text)));
        }
        self.refusal.push_str(said["refusal"].as_str().unwrap_or_default());
        for fragment in said["tool_calls"].as_array().into_iter().flatten() {
            self.grow(fragment, &fragment["function"]);
        }
        // The way before there were tools.
        if said["function_call"].is_object() {
            self.grow(&Value::Null, &said["function_call"]);
        }
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.reason = Some(reason.to_owned());
        } else if choice["message"].is_object() {
            // A whole completion is complete, whatever it leaves out.
            self.reason.get_or_insert_default();
        }
    }

    fn grow(&mut self, fragment: &Value, function: &Value) {
        let index = fragment["index"].as_u64();
        let id = fragment["id"].as_str().unwrap_or_default();
        let tool = function["name"].as_str().unwrap_or_default();
        let more = arguments(&function["arguments"]);
        if let Some(place) = self.place(index, id, tool) {
            let draft = &mut self.calls[place];
            if draft.id.is_empty() {
                id.clone_into(&mut draft.id);
            }
            if draft.tool.is_empty() {
                tool.clone_into(&mut draft.tool);
            }
            draft.arguments.push_str(&more);
        } else {
            self.calls.push(Draft { index, id: id.to_owned(), tool: tool.to_owned(), arguments: more });
        }
    }

    /// Which call a fragment belongs to; none when it begins a new one.
    ///
    /// The id decides, then the order. An index alone decides nothing, since some servers send 0 for every call.
    fn place(&self, index: Option<u64>, id: &str, tool: &str) -> Option<usize> {
        let at_index = self.calls.iter().rposition(|draft| index.is_some() && draft.index == index);
        if !id.is_empty() {
            let same = self.calls.iter().rposition(|draft| draft.id == id);
            // A server that gives every call one id names a tool again once the one before is whole.
            let again = |place: &usize| !tool.is_empty() && self.calls[*place].is_whole();
            // A server that gives every fragment an id of its own names the tool only in the first.
            let unnamed = || at_index.filter(|place| tool.is_empty() && !self.calls[*place].is_whole());
            return same.filter(|place| !again(place)).or_else(unnamed);
        }
        let last = self.calls.len().checked_sub(1);
        if tool.is_empty() {
            return at_index.or(last);
        }
        let candidate = if index.is_some() { at_index } else { last };
        candidate.filter(|place| {
            let draft = &self.calls[*place];
            (draft.tool.is_empty() || draft.tool == tool) && !draft.is_whole()
        })
    }

    /// Whether the call at `place` is only the close of one before: its id, index and tool again, without arguments.
    fn is_close(&self, place: usize) -> bool {
        let close = &self.calls[place];
        let closed = |draft: &Draft| {
            draft.id == close.id && draft.index == close.index && draft.tool == close.tool && draft.is_whole()
        };
        close.arguments.is_empty() && !close.id.is_empty() && self.calls[..place].iter().any(closed)
    }

    /// The answer as a whole.
    pub fn finish(self) -> Response {
        let redact = |text: &str| self.server.redact(text);
        let finish = match self.reason.as_deref() {
            Some("content_filter") => Finish::Refused,
            _ if !self.refusal.is_empty() => Finish::Refused,
            Some("length" | "max_tokens") => Finish::Length,
            _ => Finish::Stop,
        };
        let texts = [&self.text, &self.refusal];
        let texts = texts.into_iter().filter(|text| !text.is_empty());
        let mut items: Vec<_> = texts.map(|text| Item::Assistant { text: redact(text) }).collect();
        let calls = self.calls.iter().enumerate();
        let calls = calls.filter(|(place, _)| !self.is_close(*place));
        items.extend(calls.map(|(_, draft)| {
            Item::Call(ToolCall {
                id: draft.id.clone(),
                tool: redact(&draft.tool),
                arguments: redact(&draft.arguments),
            })
        }));
        Response { items, finish, usage: self.usage, model: self.model.as_deref().map(redact) }
    }
}

/// Content as text: a text, or parts of which some are text.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

fn usage(usage: &Value) -> Option<Usage> {
    let counted = Usage {
        input_tokens: usage["prompt_tokens"].as_u64()?,
        cached_tokens: usage["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap_or(0),
        output_tokens: usage["completion_tokens"].as_u64().unwrap_or(0),
        reasoning_tokens: usage["completion_tokens_details"]["reasoning_tokens"].as_u64().unwrap_or(0),
    };
    // Some servers send zeros where they do not count; that must not switch a budget off.
    (counted.total() > 0).then_some(counted)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::server::Settings;

    /// The calls (tool and arguments) that fragments come to.
    fn calls(fragments: impl IntoIterator<Item = Value>) -> Vec<(String, String)> {
        let server = Server::new(Settings::new("m", "http://localhost:1/v1")).expect("a server");
        let mut answer = Answer::new(&server);
        for fragment in fragments {
            answer.take(&json!({"choices": [{"delta": {"tool_calls": [fragment]}}]}), &|_| {});
        }
        let response = answer.finish();
        let calls = response.calls();
        calls.map(|call| (call.tool.clone(), call.arguments.clone())).collect()
    }

    fn piece(index: Option<u64>, id: &str, name: &str, arguments: &str) -> Value {
        json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}})
    }

    fn expected(calls: &[(&str, &str)]) -> Vec<(String, String)> {
        calls.iter().map(|(tool, arguments)| ((*tool).to_owned(), (*arguments).to_owned())).collect()
    }

    #[test]
    fn an_id_of_its_own_for_every_fragment_splits_no_call() {
        let found = calls([
            piece(Some(0), "a", "shell", ""),
            piece(Some(0), "b", "", "{\"x\":"),
            piece(Some(0), "c", "", "1}"),
            piece(Some(1), "d", "read_file", "{}"),
        ]);
        assert_eq!(found, expected(&[("shell", "{\"x\":1}"), ("read_file", "{}")]));
    }

    #[test]
    fn a_closing_fragment_is_no_call() {
        let found = calls([piece(Some(0), "a", "shell", "{\"x\":1}"), piece(Some(0), "a", "shell", "")]);
        assert_eq!(found, expected(&[("shell", "{\"x\":1}")]));
    }

    #[test]
    fn one_index_or_one_id_for_all_loses_no_call() {
        let two = expected(&[("shell", "{\"x\":1}"), ("shell", "{\"x\":2}")]);
        let (first, second) = ("{\"x\":1}", "{\"x\":2}");
        for (index, ids) in
            [(Some(0), ["a", "b"]), (None, ["a", "b"]), (Some(0), ["a", "a"]), (None, ["", ""])]
        {
            let found = calls([piece(index, ids[0], "shell", first), piece(index, ids[1], "shell", second)]);
            assert_eq!(found, two, "{index:?} {ids:?}");
        }
    }

    #[test]
    fn interleaved_fragments_go_by_their_index() {
        let found = calls([
            piece(Some(0), "a", "shell", ""),
            piece(Some(1), "b", "shell", ""),
            piece(Some(0), "", "", "{\"x\":1}"),
            piece(Some(1), "", "", "{\"x\":2}"),
        ]);
        assert_eq!(found, expected(&[("shell", "{\"x\":1}"), ("shell", "{\"x\":2}")]));
    }
}
