//! Tool calls as they go over the wire: ids that are unique, arguments a server can read back.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{Finish, Item, Request};
use crate::event::usage::Usage;

/// Gives every call in `answer` an id of its own: servers leave them out or count from 0 in every answer, and an
/// output must say which call it is for.
pub(super) fn make_ids_unique(answer: &mut [Item], request: &Request<'_>) {
    let mut used: HashSet<String> = request
        .items
        .iter()
        .filter_map(|item| match item {
            Item::Call(call) => Some(call.id.clone()),
            _ => None,
        })
        .collect();
    for item in answer {
        let Item::Call(call) = item else { continue };
        while call.id.is_empty() || !used.insert(call.id.clone()) {
            call.id = format!("call_{:016x}", fastrand::u64(..));
        }
    }
}

/// Arguments as they are sent back: some servers parse them and fail on broken JSON, so that is wrapped.
pub(super) fn sendable(arguments: &str) -> String {
    let is_object = serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object());
    if is_object {
        arguments.to_owned()
    } else {
        json!({ "invalid_json": arguments }).to_string()
    }
}

/// Arguments as text, for servers that send them as an object.
pub(super) fn arguments(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Some servers say that a cut answer is complete; its length tells.
pub(super) fn finish_by_length(finish: Finish, usage: Option<Usage>, limit: Option<u32>) -> Finish {
    match (finish, usage, limit) {
        (Finish::Stop, Some(usage), Some(limit)) if usage.output_tokens >= u64::from(limit) => Finish::Length,
        _ => finish,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::ToolCall;

    #[test]
    fn ids_are_unique_in_the_whole_conversation() {
        let call = |id: &str| {
            Item::Call(ToolCall {
                id: id.to_owned(),
                tool: "shell".to_owned(),
                arguments: "{}".to_owned(),
            })
        };
        let before = [call("call_0")];
        let request = Request {
            instructions: "",
            items: &before,
            tools: &[],
            max_output_tokens: None,
        };
        let mut answer = [call(""), call("call_0"), call("call_1"), call("call_1")];
        make_ids_unique(&mut answer, &request);
        let ids: HashSet<_> = before
            .iter()
            .chain(&answer)
            .map(|item| match item {
                Item::Call(call) => call.id.clone(),
                _ => String::new(),
            })
            .collect();
        assert_eq!(ids.len(), 5);
        assert!(ids.contains("call_1") && !ids.contains(""));
    }

    #[test]
    fn broken_arguments_are_sent_back_as_json() {
        assert_eq!(sendable(r#"{"a": 1}"#), r#"{"a": 1}"#);
        assert_eq!(sendable("{\"a"), r#"{"invalid_json":"{\"a"}"#);
        assert_eq!(sendable(""), r#"{"invalid_json":""}"#);
    }
}
