//! An answer in Responses.

use serde_json::{Value, json};

use super::{Answer, model, without_nulls};

/// As one document.
pub fn whole(answer: &Answer) -> Value {
    response(answer, &output(answer))
}

/// As a stream.
pub fn events(answer: &Answer) -> Vec<Value> {
    let output = output(answer);
    let mut events = vec![json!({
        "type": "response.created",
        "response": { "id": "resp_1", "object": "response", "status": "in_progress" },
    })];
    for (index, item) in output.iter().enumerate() {
        let id = &item["id"];
        let at = |mut event: Value| {
            event["output_index"] = json!(index);
            event["item_id"] = id.clone();
            event
        };
        let mut begun = item.clone();
        if begun["type"] == "function_call" {
            begun["arguments"] = json!("");
        } else if begun["type"] == "message" {
            begun["content"] = json!([]);
        }
        events.push(at(json!({ "type": "response.output_item.added", "item": begun })));
        let text = item["content"][0]["text"].as_str().unwrap_or_default();
        for piece in Answer::pieces(text) {
            events.push(at(
                json!({ "type": "response.output_text.delta", "content_index": 0, "delta": piece }),
            ));
        }
        let arguments = item["arguments"].as_str().unwrap_or_default();
        for piece in Answer::pieces(arguments) {
            events.push(at(
                json!({ "type": "response.function_call_arguments.delta", "delta": piece }),
            ));
        }
        if item["type"] == "function_call" && !answer.habits.bare {
            let done = json!({ "type": "response.function_call_arguments.done", "arguments": arguments });
            events.push(at(done));
        }
        events.push(at(json!({ "type": "response.output_item.done", "item": item })));
    }
    let last = response(answer, &output);
    let name = format!("response.{}", last["status"].as_str().unwrap_or("completed"));
    events.push(json!({ "type": name, "response": last }));
    for (number, event) in events.iter_mut().enumerate() {
        if answer.habits.bare {
            for name in ["output_index", "content_index", "item_id"] {
                event.as_object_mut().map(|map| map.remove(name));
            }
        } else {
            event["sequence_number"] = json!(number);
        }
    }
    events
}

fn output(answer: &Answer) -> Vec<Value> {
    let mut output: Vec<_> = answer.reasoning.clone().into_iter().collect();
    let mut content = Vec::new();
    if !answer.text.is_empty() {
        content.push(json!({ "type": "output_text", "text": answer.text, "annotations": [] }));
    }
    if let Some(refusal) = &answer.refusal {
        content.push(json!({ "type": "refusal", "refusal": refusal }));
    }
    if !content.is_empty() {
        output.push(json!({
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": content,
        }));
    }
    for (number, (id, tool, arguments)) in answer.identified().into_iter().enumerate() {
        output.push(without_nulls(json!({
            "type": "function_call",
            "id": id.as_ref().map(|_| format!("fc_{number}")),
            "call_id": id,
            "name": tool,
            "arguments": arguments,
            "status": "completed",
        })));
    }
    output
}

fn response(answer: &Answer, output: &[Value]) -> Value {
    let reason = match answer.reason() {
        // llama.cpp says of a cut answer that it is complete.
        "length" if !answer.habits.bare => Some("max_output_tokens"),
        "content_filter" => Some("content_filter"),
        _ => None,
    };
    let mut response = json!({
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": model(),
        "status": if reason.is_some() { "incomplete" } else { "completed" },
        "output": output,
    });
    if let Some([read, cached, written, reasoning]) = answer.usage {
        response["usage"] =
            json!({ "input_tokens": read, "output_tokens": written, "total_tokens": read + written });
        if !answer.habits.bare {
            response["usage"]["input_tokens_details"] = json!({ "cached_tokens": cached });
            response["usage"]["output_tokens_details"] = json!({ "reasoning_tokens": reasoning });
        }
    }
    if !answer.habits.bare {
        response["error"] = Value::Null;
        response["incomplete_details"] = reason.map_or(Value::Null, |reason| json!({ "reason": reason }));
    }
    response
}
