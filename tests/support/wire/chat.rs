//! An answer in Chat Completions.

use serde_json::{Value, json};

use super::{Answer, Ids, Indexes, model, without_nulls};

/// As one document.
pub fn whole(answer: &Answer) -> Value {
    let calls: Vec<_> = answer
        .identified()
        .into_iter()
        .map(|(id, tool, arguments)| {
            let function = json!({ "name": tool, "arguments": arguments });
            without_nulls(json!({ "id": id, "type": "function", "function": function }))
        })
        .collect();
    let message = without_nulls(json!({
        "role": "assistant",
        "content": answer.text,
        "refusal": answer.refusal,
        "reasoning_content": answer.reasoning,
        "tool_calls": (!calls.is_empty()).then_some(calls),
    }));
    without_nulls(json!({
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model(),
        "choices": [{ "index": 0, "message": message, "finish_reason": answer.reason() }],
        "usage": usage(answer),
    }))
}

/// As a stream.
pub fn chunks(answer: &Answer) -> Vec<Value> {
    let mut chunks = vec![chunk(json!({ "role": "assistant", "content": null }), None)];
    if let Some(reasoning) = &answer.reasoning {
        chunks.push(chunk(json!({ "reasoning_content": reasoning }), None));
    }
    for text in Answer::pieces(&answer.text) {
        chunks.push(chunk(json!({ "content": text }), None));
    }
    if let Some(refusal) = &answer.refusal {
        chunks.push(chunk(json!({ "refusal": refusal }), None));
    }
    for (number, (id, tool, arguments)) in answer.identified().into_iter().enumerate() {
        let index = match answer.habits.indexes {
            Indexes::Own => Some(number),
            Indexes::Missing => None,
            Indexes::Zero => Some(0),
        };
        let call = |call: Value| {
            let mut call = without_nulls(call);
            if let Some(index) = index {
                call["index"] = json!(index);
            }
            chunk(json!({ "tool_calls": [call] }), None)
        };
        // Servers without ids send a call in one piece; the others let it grow.
        if answer.habits.ids == Ids::Missing {
            let function = json!({ "name": tool, "arguments": arguments });
            chunks.push(call(json!({ "type": "function", "function": function })));
            continue;
        }
        let begin = json!({ "name": tool, "arguments": "" });
        chunks.push(call(json!({ "id": id, "type": "function", "function": begin })));
        for piece in Answer::pieces(arguments) {
            chunks.push(call(json!({ "function": { "arguments": piece } })));
        }
    }
    chunks.push(chunk(json!({}), Some(answer.reason())));
    if let Some(usage) = usage(answer) {
        let mut last = chunk(json!({}), None);
        last["choices"] = json!([]);
        last["usage"] = usage;
        chunks.push(last);
    }
    chunks
}

#[expect(clippy::needless_pass_by_value, reason = "called with a literal")]
fn chunk(delta: Value, reason: Option<&str>) -> Value {
    json!({
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": model(),
        "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }],
    })
}

fn usage(answer: &Answer) -> Option<Value> {
    let [read, cached, written, reasoning] = answer.usage?;
    let mut usage = json!({
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
    });
    if !answer.habits.bare {
        usage["prompt_tokens_details"] = json!({ "cached_tokens": cached });
        usage["completion_tokens_details"] = json!({ "reasoning_tokens": reasoning });
    }
    Some(usage)
}
