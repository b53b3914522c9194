//! What must be true of every request, whoever sent it.

use std::collections::{HashSet, VecDeque};

use serde_json::Value;

use super::{Protocol, Seen};

/// A conversation reduced to what is checked.
enum Move<'a> {
    Call { id: &'a str, arguments: &'a Value },
    Output { id: &'a str },
    User,
}

/// What is wrong with a request; `text` is its body as sent.
pub fn complaints(protocol: Protocol, seen: &Seen, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let expected = format!("POST {}", protocol.path());
    if seen.target != expected {
        found.push(format!("{} instead of {expected}", seen.target));
    }
    if !seen.body.is_object() {
        found.push("the body is no JSON object".to_owned());
    }
    let key = seen.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    if key.is_some_and(|key| key.is_empty() || text.contains(key)) {
        found.push("the key stands in the body, or is empty".to_owned());
    }
    if seen.body["model"].as_str().is_none_or(str::is_empty) {
        found.push("no model is named".to_owned());
    }
    if seen.items().is_empty() {
        found.push("the conversation is empty".to_owned());
    }
    tools(protocol, &seen.body["tools"], &mut found);
    calls(&moves(protocol, seen), &mut found);
    found
}

fn tools(protocol: Protocol, tools: &Value, found: &mut Vec<String>) {
    let list = match tools {
        Value::Null => return,
        Value::Array(list) if !list.is_empty() => list,
        _ => return found.push("`tools` is there without a tool".to_owned()),
    };
    let mut names = HashSet::new();
    for tool in list {
        let function = match protocol {
            Protocol::Responses => tool,
            Protocol::Chat => &tool["function"],
        };
        let name = function["name"].as_str().unwrap_or_default();
        if tool["type"] != "function" || name.is_empty() || !function["parameters"].is_object() {
            found.push(format!("not a tool: {tool}"));
        }
        if !names.insert(name) {
            found.push(format!("two tools `{name}`"));
        }
    }
}

fn moves(protocol: Protocol, seen: &Seen) -> Vec<Move<'_>> {
    let mut moves = Vec::new();
    for item in seen.items() {
        let text = |name: &str| item[name].as_str().unwrap_or_default();
        match (protocol, text("type"), text("role")) {
            (Protocol::Responses, "function_call", _) => {
                moves.push(Move::Call { id: text("call_id"), arguments: &item["arguments"] });
            }
            (Protocol::Responses, "function_call_output", _) => {
                moves.push(Move::Output { id: text("call_id") });
            }
            (Protocol::Chat, _, "tool") => moves.push(Move::Output { id: text("tool_call_id") }),
            (Protocol::Chat, _, "assistant") => {
                for call in item["tool_calls"].as_array().into_iter().flatten() {
                    moves.push(Move::Call {
                        id: call["id"].as_str().unwrap_or_default(),
                        arguments: &call["function"]["arguments"],
                    });
                }
            }
            (_, _, "user") => moves.push(Move::User),
            _ => {}
        }
    }
    moves
}

/// Every call is answered exactly once, in order, before anything else is said.
fn calls(moves: &[Move<'_>], found: &mut Vec<String>) {
    let mut waiting = VecDeque::new();
    let mut known = HashSet::new();
    let mut answering = false;
    for one in moves {
        match one {
            Move::Call { id, arguments } => {
                if answering && !waiting.is_empty() {
                    found.push(format!("call `{id}` comes between the outputs of others"));
                }
                if id.is_empty() || !known.insert(*id) {
                    found.push(format!("call id `{id}` is empty or used twice"));
                }
                let text = arguments.as_str().unwrap_or_default();
                if serde_json::from_str::<Value>(text).is_err() {
                    found.push(format!("the arguments of call `{id}` are no JSON: {arguments}"));
                }
                waiting.push_back(*id);
                answering = false;
            }
            Move::Output { id } => {
                answering = true;
                match waiting.pop_front() {
                    Some(next) if next == *id => {}
                    Some(next) => found.push(format!("output for `{id}` where `{next}` was next")),
                    None => found.push(format!("output for `{id}`, which waits for none")),
                }
            }
            Move::User if !waiting.is_empty() => {
                found.push(format!("the user speaks while {waiting:?} wait for outputs"));
            }
            Move::User => {}
        }
    }
    if !waiting.is_empty() {
        found.push(format!("no outputs for {waiting:?}"));
    }
}
