//! Models over the wire: one suite for both protocols, with every habit and fault of docs/models.md.
#![expect(clippy::expect_used, reason = "helpers of tests")]

use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};
use tidemill::event::ToolCall;
use tidemill::event::usage::Usage;
use tidemill::model::chat::Chat;
use tidemill::model::key::Key;
use tidemill::model::responses::Responses;
use tidemill::model::server::Settings;
use tidemill::model::{Delta, Finish, Item, Model, ModelError, Request, Response, Retry, ToolSpec};

use crate::support::wire::{Ids, Indexes, Protocol, Reply, Seen, Wire};

const KEY: &str = "sk-wire-0123456789abcdef";
const BOTH: [Protocol; 2] = [Protocol::Responses, Protocol::Chat];

/// A server and a model that is asked there.
struct Pair {
    wire: Wire,
    model: Box<dyn Model>,
}

impl Pair {
    async fn start(protocol: Protocol) -> Self {
        Self::with(protocol, |_| {}).await
    }

    async fn with(protocol: Protocol, change: impl FnOnce(&mut Settings)) -> Self {
        let wire = Wire::start(protocol).await;
        let mut settings = Settings {
            key: Key::new(KEY),
            key_env: Some("WIRE_KEY".to_owned()),
            model: "wire-1".to_owned(),
            ..Settings::new("double", wire.base_url())
        };
        change(&mut settings);
        let model: Box<dyn Model> = match protocol {
            Protocol::Responses => Box::new(Responses::new(settings).expect("it opens")),
            Protocol::Chat => Box::new(Chat::new(settings).expect("it opens")),
        };
        Self { wire, model }
    }

    async fn ask(&self, items: &[Item]) -> Result<Response, ModelError> {
        let tools = [tool()];
        self.ask_with(items, &tools, &|_| {}).await
    }

    async fn ask_with(
        &self,
        items: &[Item],
        tools: &[ToolSpec],
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Response, ModelError> {
        let request = Request {
            instructions: "be brief",
            items,
            tools,
            max_output_tokens: Some(1_000),
        };
        let result = self.model.respond(&request, deltas).await;
        if let Err(error) = &result {
            let shown = format!("{:?} {:?}", error.diagnostic, error.diagnostic.report());
            assert!(!shown.contains(KEY), "the key is shown: {shown}");
            assert!(error.diagnostic.advice().is_some(), "no advice: {shown}");
        }
        result
    }

    /// The answer to one reply.
    async fn answer(&self, reply: Reply) -> Response {
        self.wire.reply(reply);
        let result = self.ask(&[user("go")]).await;
        assert_eq!(self.wire.complaints(), Vec::<String>::new());
        result.expect("an answer")
    }

    /// The error after one reply.
    async fn error(&self, reply: Reply) -> ModelError {
        self.wire.reply(reply);
        self.ask(&[user("go")]).await.expect_err("an error")
    }

    fn last(&self) -> Seen {
        self.wire.requests().pop().expect("a request")
    }
}

fn user(text: &str) -> Item {
    Item::User {
        text: text.to_owned(),
    }
}

fn tool() -> ToolSpec {
    ToolSpec {
        name: "shell".to_owned(),
        description: "runs a command".to_owned(),
        parameters: json!({
            "type": "object",
            "properties": { "command": { "type": "string" } },
            "required": ["command"],
            "additionalProperties": false,
        }),
    }
}

fn calls(response: &Response) -> Vec<(&str, &str)> {
    response
        .calls()
        .map(|call| (call.tool.as_str(), call.arguments.as_str()))
        .collect()
}

fn later(asked: Option<Duration>) -> Retry {
    Retry::After { asked }
}

const LS: &str = r#"{"command":"ls -la é🌊"}"#;
const PWD: &str = r#"{"command":"pwd"}"#;

fn two_calls() -> Reply {
    Reply::calls([("shell", json!(LS)), ("shell", json!(PWD))])
}

#[tokio::test]
async fn text_is_streamed_and_counted() {
    for protocol in BOTH {
        let pair = Pair::start(protocol).await;
        pair.wire
            .reply(Reply::text("a tide 🌊 comes in").usage([100, 40, 20, 8]));
        let heard = Mutex::new(String::new());
        let hear = |delta| {
            if let Delta::Text(text) = delta {
                heard.lock().expect("no panic").push_str(&text);
            }
        };
        let response = pair.ask_with(&[user("go")], &[], &hear).await.expect("an answer");
        assert_eq!(response.text(), "a tide 🌊 comes in");
        assert_eq!(heard.into_inner().expect("no panic"), response.text());
        assert_eq!(response.finish, Finish::Stop);
        assert_eq!(response.model.as_deref(), Some("wire-1"));
        let usage = Usage {
            input_tokens: 100,
            cached_tokens: 40,
            output_tokens: 20,
            reasoning_tokens: 8,
        };
        assert_eq!(response.usage, Some(usage));
        let seen = pair.last();
        assert_eq!(seen.tools(), Vec::<&str>::new());
        assert!(seen.body.get("tools").is_none(), "no tools, no field");
        assert_eq!(
            seen.header("authorization"),
            Some(format!("Bearer {KEY}").as_str())
        );
        assert_eq!(pair.wire.complaints(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_whole_conversation_goes_back_in_order() {
    for protocol in BOTH {
        let pair = Pair::start(protocol).await;
        let first = pair.answer(two_calls().saying("let me look")).await;
        assert_eq!(calls(&first), [("shell", LS), ("shell", PWD)]);
        let mut items = vec![user("go")];
        items.extend(first.items.iter().cloned());
        for call in first.calls() {
            items.push(Item::Output {
                call: call.id.clone(),
                output: format!("output of {}", call.arguments),
            });
        }
        pair.wire.reply(Reply::text("done"));
        let second = pair.ask(&items).await.expect("an answer");
        assert_eq!(second.text(), "done");
        assert_eq!(pair.wire.complaints(), Vec::<String>::new());
        let seen = pair.last();
        assert_eq!(
            seen.outputs(),
            [
                &json!(format!("output of {LS}")),
                &json!(format!("output of {PWD}"))
            ]
        );
        assert_eq!(seen.tools(), ["shell"]);
    }
}

#[tokio::test]
async fn the_double_complains_about_a_call_without_an_output() {
    for protocol in BOTH {
        let pair = Pair::start(protocol).await;
        let call = Item::Call(ToolCall {
            id: "call_1".into(),
            tool: "shell".into(),
            arguments: "{}".into(),
        });
        let error = pair.ask(&[user("go"), call]).await.expect_err("refused");
        assert_eq!(error.diagnostic.code(), "model::bad_request");
        assert_eq!(pair.wire.complaints(), ["no outputs for [\"call_1\"]"]);
    }
}

#[tokio::test]
async fn reasoning_goes_back_word_for_word() {
    let pair = Pair::start(Protocol::Responses).await;
    let reasoning = json!({
        "type": "reasoning",
        "id": "rs_1",
        "summary": [],
        "encrypted_content": "gAAAA==",
        "not_known_yet": { "kept": true },
    });
    let first = pair.answer(two_calls().reasoning(reasoning.clone())).await;
    let seen = pair.last();
    assert_eq!(seen.body["store"], false);
    assert_eq!(seen.body["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!(seen.body["instructions"], "be brief");
    assert_eq!(seen.body["max_output_tokens"], 1_000);
    assert_eq!(seen.body["tools"][0]["strict"], true);
    let mut items = vec![user("go")];
    items.extend(first.items.iter().cloned());
    items.extend(first.calls().map(|call| Item::Output {
        call: call.id.clone(),
        output: "ok".into(),
    }));
    items.push(Item::Verbatim {
        provider: "someone".into(),
        value: json!({ "type": "x" }),
    });
    pair.wire.reply(Reply::text("done"));
    pair.ask(&items).await.expect("an answer");
    assert_eq!(pair.wire.complaints(), Vec::<String>::new());
    let sent: Vec<_> = pair.last().items().to_vec();
    assert_eq!(sent[1], reasoning);
    assert!(
        !sent.contains(&json!({ "type": "x" })),
        "another provider's item was sent"
    );
}

#[tokio::test]
async fn reasoning_in_chat_is_a_sign_of_life_and_no_text() {
    let pair = Pair::start(Protocol::Chat).await;
    pair.wire.reply(Reply::text("").reasoning(json!("hmm")));
    let heard = Mutex::new(Vec::new());
    let response = pair
        .ask_with(&[user("go")], &[], &|delta| {
            heard.lock().expect("no panic").push(delta)
        })
        .await
        .expect("an answer");
    assert_eq!(response.items, []);
    let heard = heard.into_inner().expect("no panic");
    assert!(heard.contains(&Delta::Alive) && !heard.iter().any(|delta| matches!(delta, Delta::Text(_))));
    assert_eq!(
        pair.last().body["stream_options"],
        json!({ "include_usage": true })
    );
}

#[tokio::test]
async fn every_way_of_framing_is_read() {
    for protocol in BOTH {
        let pair = Pair::start(protocol).await;
        let plain = pair.answer(two_calls().saying("é🌊")).await;
        let expected = calls(&plain);
        let framings: [fn(Reply) -> Reply; 6] = [
            Reply::lines,
            Reply::whole,
            Reply::bare,
            |reply| reply.split_every(1),
            |reply| reply.lines().split_every(3),
            |reply| reply.bare().whole().split_every(5),
        ];
        for (number, framing) in framings.into_iter().enumerate() {
            let response = pair.answer(framing(two_calls().saying("é🌊"))).await;
            assert_eq!(calls(&response), expected, "{protocol:?}, framing {number}");
            assert_eq!(response.text(), "é🌊", "{protocol:?}, framing {number}");
            assert!(response.usage.is_some(), "{protocol:?}, framing {number}");
        }
    }
}

#[tokio::test]
async fn calls_survive_missing_and_reused_ids_and_indexes() {
    for protocol in BOTH {
        for ids in [Ids::Own, Ids::Missing, Ids::Same] {
            for indexes in [Indexes::Own, Indexes::Missing, Indexes::Zero] {
                let pair = Pair::start(protocol).await;
                let same = Reply::calls([("shell", json!(PWD)), ("shell", json!(PWD)), ("read", json!(LS))]);
                let response = pair.answer(same.ids(ids).indexes(indexes)).await;
                let expected = [("shell", PWD), ("shell", PWD), ("read", LS)];
                assert_eq!(calls(&response), expected, "{protocol:?} {ids:?} {indexes:?}");
                let mut names: Vec<_> = response.calls().map(|call| call.id.clone()).collect();
                names.sort();
                names.dedup();
                assert_eq!(names.len(), 3, "{protocol:?} {ids:?} {indexes:?}");
                assert!(!names.contains(&String::new()));
            }
        }
    }
}

#[tokio::test]
async fn a_server_that_counts_ids_from_zero_in_every_answer_is_survived() {
    for protocol in BOTH {
        let pair = Pair::start(protocol).await;
        let mut items = vec![user("go")];
        for _ in 0..3 {
            pair.wire
                .reply(Reply::calls([("shell", json!(PWD))]).ids(Ids::Same));
            let response = pair.ask(&items).await.expect("an answer");
            items.extend(response.items.iter().cloned());
            items.extend(response.calls().map(|call| Item::Output {
                call: call.id.clone(),
                output: "ok".into(),
            }));
        }
        assert_eq!(pair.wire.complaints(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn the_calls_count_and_not_the_reason() {
    let pair = Pair::start(Protocol::Chat).await;
    let response = pair.answer(two_calls().finish("stop")).await;
    assert_eq!(calls(&response).len(), 2);
    assert_eq!(response.finish, Finish::Stop);
}

#[tokio::test]
async fn what_is_cut_by_length_is_said_to_be_so() {
    let broken = r#"{"command":"pri"#;
    for protocol in BOTH {
        let pair = Pair::start(protocol).await;
        let cut = Reply::calls([("shell", json!(broken))]).finish("length");
        let response = pair.answer(cut.clone()).await;
        assert_eq!(
            (response.finish, calls(&response)),
            (Finish::Length, vec![("shell", broken)])
        );
        // A server that says nothing of it is found out by the count.
        let response = pair
            .answer(cut.finish("stop").bare().usage([10, 0, 1_000, 0]))
            .await;
        assert_eq!(response.finish, Finish::Length, "{protocol:?}");
        // And what is broken goes back as something a server can parse.
        let mut items = vec![user("go")];
        items.extend(response.items.iter().cloned());
        items.extend(response.calls().map(|call| Item::Output {
            call: call.id.clone(),
            output: "no JSON".into(),
        }));
        pair.wire.reply(Reply::text("sorry"));
        pair.ask(&items).await.expect("an answer");
        assert_eq!(pair.wire.complaints(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn unknown_tools_and_broken_arguments_pass_through() {
    for protocol in BOTH {
        let pair = Pair::start(protocol).await;
        let response = pair
            .answer(Reply::calls([("launch", json!("{not json")), ("", json!("[1]"))]))
            .await;
        assert_eq!(calls(&response), [("launch", "{not json"), ("", "[1]")]);
    }
}

#[tokio::test]
async fn an_empty_answer_is_an_answer_without_items() {
    for protocol in BOTH {
        let pair = Pair::start(protocol).await;
        let response = pair.answer(Reply::text("").without_usage()).await;
        assert_eq!(response.items, []);
        assert_eq!(response.usage, None);
        assert_eq!(response.finish, Finish::Stop);
    }
}

#[tokio::test]
async fn a_refusal_is_a_refusal() {
    for protocol in BOTH {
        let pair = Pair::start(protocol).await;
        let response = pair.answer(Reply::text("").refusing("I cannot")).await;
        assert_eq!(
            (response.finish, response.text().as_str()),
            (Finish::Refused, "I cannot")
        );
        let response = pair.answer(Reply::text("half a").finish("content_filter")).await;
        assert_eq!(response.finish, Finish::Refused);
    }
}

/// A status, the error in its body, and the code and whether a retry helps.
type Case = (u16, Value, &'static str, bool);

fn refusals() -> Vec<Case> {
    let error = |message: &str, kind: &str, code: Value| json!({ "error": { "message": message, "type": kind, "code": code } });
    let overflow = json!({ "error": {
        "code": 400, "message": "the request exceeds the available context size, try increasing it",
        "type": "exceed_context_size_error", "n_prompt_tokens": 9000, "n_ctx": 4096,
    }});
    vec![
        (
            401,
            error("Invalid API Key", "authentication_error", json!(401)),
            "model::unauthorized",
            false,
        ),
        (
            401,
            error(
                "Incorrect API key",
                "invalid_request_error",
                json!("invalid_api_key"),
            ),
            "model::unauthorized",
            false,
        ),
        (403, json!({ "detail": "not yours" }), "model::forbidden", false),
        (400, overflow, "model::context_overflow", false),
        (
            400,
            error(
                "too long",
                "invalid_request_error",
                json!("context_length_exceeded"),
            ),
            "model::context_overflow",
            false,
        ),
        (
            404,
            error(
                "The model `x` does not exist",
                "invalid_request_error",
                json!("model_not_found"),
            ),
            "model::unknown_model",
            false,
        ),
        (404, json!("Not Found"), "model::wrong_url", false),
        (
            400,
            error("bad tools", "invalid_request_error", Value::Null),
            "model::bad_request",
            false,
        ),
        (
            422,
            json!({ "detail": [{ "msg": "x" }] }),
            "model::bad_request",
            false,
        ),
        (
            429,
            error("slow down", "tokens", json!("rate_limit_exceeded")),
            "model::rate_limited",
            true,
        ),
        (
            429,
            error("pay first", "insufficient_quota", json!("insufficient_quota")),
            "model::quota",
            false,
        ),
        (500, json!({ "error": "boom" }), "model::server_error", true),
        (502, json!("bad gateway"), "model::server_error", true),
        (
            503,
            error("Loading model", "unavailable_error", json!(503)),
            "model::overloaded",
            true,
        ),
        (529, json!({}), "model::overloaded", true),
    ]
}

#[tokio::test]
async fn a_refusal_of_the_server_is_said_exactly() {
    for protocol in BOTH {
        let pair = Pair::start(protocol).await;
        for (status, body, code, retry) in refusals() {
            let error = pair.error(Reply::error(status, body.clone())).await;
            assert_eq!(error.diagnostic.code(), code, "{status} {body}");
            let expected = if retry { later(None) } else { Retry::Never };
            assert_eq!(error.retry, expected, "{status} {body}");
            let words = body["error"]["message"].as_str().unwrap_or_default();
            assert!(error.diagnostic.message().contains(words), "{}", error.diagnostic);
            assert!(error.diagnostic.message().contains(&status.to_string()));
        }
        // Nothing was tried twice behind our back.
        assert_eq!(pair.wire.requests().len(), refusals().len());
    }
}

#[tokio::test]
async fn an_error_inside_a_200_is_an_error() {
    for protocol in BOTH {
        let pair = Pair::start(protocol).await;
        for (status, body, code, _) in refusals() {
            let Some(kind) = body["error"]["code"].as_u64() else {
                continue;
            };
            assert_eq!(kind, u64::from(status));
            for reply in [
                Reply::messages([body.clone()]),
                Reply::messages([body.clone()]).whole(),
            ] {
                assert_eq!(pair.error(reply).await.diagnostic.code(), code, "{body}");
            }
        }
        let unknown = pair
            .error(Reply::messages([json!({ "error": "the GPU is on fire" })]))
            .await;
        assert_eq!(unknown.diagnostic.code(), "model::server_error");
        assert!(unknown.diagnostic.message().contains("the GPU is on fire"));
        assert_eq!(unknown.retry, later(None));
    }
}

#[tokio::test]
async fn failed_and_error_events_are_errors() {
    let pair = Pair::start(Protocol::Responses).await;
    let failed = |code: &str| {
        let error = json!({ "code": code, "message": "no luck" });
        Reply::messages([
            json!({ "type": "response.failed", "response": { "status": "failed", "error": error } }),
        ])
    };
    for (code, expected) in [
        ("server_error", "model::server_error"),
        ("rate_limit_exceeded", "model::rate_limited"),
        ("context_length_exceeded", "model::context_overflow"),
    ] {
        let error = pair.error(failed(code)).await;
        assert_eq!(error.diagnostic.code(), expected);
        assert!(error.diagnostic.message().contains("no luck"));
    }
    let event = json!({ "type": "error", "code": "invalid_prompt", "message": "not that", "param": null });
    let error = pair.error(Reply::messages([event])).await;
    assert_eq!(error.diagnostic.code(), "model::bad_request");
}

#[tokio::test]
async fn the_wait_a_server_asks_for_is_passed_on() {
    for protocol in BOTH {
        let pair = Pair::start(protocol).await;
        let busy = || Reply::error(429, json!({ "error": { "message": "slow down" } }));
        let cases = [
            (busy().header("Retry-After", "7"), 7_000),
            (busy().header("retry-after-ms", "250"), 250),
            (
                busy()
                    .header("Date", "Thu, 01 Jan 2026 00:00:00 GMT")
                    .header("Retry-After", "Thu, 01 Jan 2026 00:01:00 GMT"),
                60_000,
            ),
        ];
        for (reply, millis) in cases {
            assert_eq!(
                pair.error(reply).await.retry,
                later(Some(Duration::from_millis(millis)))
            );
        }
    }
}

#[tokio::test]
async fn an_echoed_key_is_not_shown() {
    for protocol in BOTH {
        let pair = Pair::start(protocol).await;
        let body = json!({ "error": { "message": format!("Incorrect API key provided: {KEY}.") } });
        let error = pair.error(Reply::error(401, body.clone())).await;
        assert!(error.diagnostic.message().contains("provided: [key]."));
        assert!(
            error
                .diagnostic
                .advice()
                .is_some_and(|help| help.contains("WIRE_KEY"))
        );
        let error = pair.error(Reply::raw("text/html", format!("<p>{KEY}</p>"))).await;
        assert_eq!(error.diagnostic.code(), "model::bad_answer");
        pair.error(Reply::messages([body])).await;
        let response = pair.answer(Reply::text(format!("your key is {KEY}"))).await;
        assert_eq!(response.text(), "your key is [key]");
        let arguments = json!({ "command": format!("echo {KEY}") });
        let response = pair.answer(Reply::calls([("shell", arguments)])).await;
        assert_eq!(calls(&response), [("shell", r#"{"command":"echo [key]"}"#)]);
    }
}

#[tokio::test]
async fn a_stream_cut_anywhere_is_a_retry_or_an_answer_and_never_half_of_one() {
    for protocol in BOTH {
        let pair = Pair::start(protocol).await;
        let whole = calls(&pair.answer(two_calls()).await)
            .iter()
            .map(|(tool, arguments)| (tool.to_string(), arguments.to_string()))
            .collect::<Vec<_>>();
        let mut cuts = 0;
        for bytes in (0..4_000).step_by(37) {
            pair.wire.reply(two_calls().cut_after(bytes));
            match pair.ask(&[user("go")]).await {
                Ok(response) => {
                    let got: Vec<_> = calls(&response)
                        .iter()
                        .map(|(tool, arguments)| (tool.to_string(), arguments.to_string()))
                        .collect();
                    assert_eq!(got, whole, "cut after {bytes}");
                }
                Err(error) => {
                    cuts += 1;
                    assert_eq!(error.diagnostic.code(), "model::cut_stream", "cut after {bytes}");
                    assert_eq!(error.retry, later(None));
                }
            }
        }
        assert!(cuts > 10, "{protocol:?}: only {cuts} cuts");
    }
}

#[tokio::test]
async fn an_end_without_a_word_is_a_cut() {
    for protocol in BOTH {
        let pair = Pair::start(protocol).await;
        for reply in [
            Reply::raw("text/event-stream", ""),
            Reply::raw("application/json", "{\"id\":"),
        ] {
            let error = pair.error(reply).await;
            assert_eq!(error.diagnostic.code(), "model::cut_stream");
            assert_eq!(error.retry, later(None));
        }
    }
}

#[tokio::test]
async fn a_stalled_stream_is_given_up() {
    for protocol in BOTH {
        let pair = Pair::with(protocol, |settings| settings.stall = Duration::from_millis(50)).await;
        for bytes in [1, 200] {
            let error = pair.error(Reply::text("slow").stall_after(bytes)).await;
            assert_eq!(error.diagnostic.code(), "model::stalled");
            assert_eq!(error.retry, later(None));
        }
    }
}

#[tokio::test]
async fn a_connection_closed_against_its_promise_is_tried_once_more() {
    for protocol in BOTH {
        let pair = Pair::start(protocol).await;
        pair.answer(Reply::text("one").close_after()).await;
        assert_eq!(pair.answer(Reply::text("two")).await.text(), "two");
        // Once only: a server that always closes is not reachable.
        pair.wire.reply(Reply::close()).reply(Reply::close());
        let error = pair.ask(&[user("go")]).await.expect_err("closed twice");
        assert_eq!(error.diagnostic.code(), "model::unreachable");
        assert_eq!(error.retry, later(None));
        assert_eq!(pair.wire.requests().len(), 4);
    }
}

#[tokio::test]
async fn connections_are_used_again() {
    for protocol in BOTH {
        let pair = Pair::start(protocol).await;
        for _ in 0..5 {
            pair.answer(Reply::text("hello")).await;
        }
        let connections: Vec<_> = pair.wire.requests().iter().map(|seen| seen.connection).collect();
        assert_eq!(connections, [0; 5]);
    }
}

#[tokio::test]
async fn what_is_no_answer_is_said_with_the_setting_to_look_at() {
    for protocol in BOTH {
        let pair = Pair::start(protocol).await;
        let error = pair
            .error(Reply::raw("text/html", "<html>\u{1b}[31m a login page"))
            .await;
        assert_eq!(error.diagnostic.code(), "model::bad_answer");
        assert!(
            !error.diagnostic.message().contains('\u{1b}'),
            "an escape is shown raw"
        );
        assert!(
            error
                .diagnostic
                .advice()
                .is_some_and(|help| help.contains("base_url"))
        );
        let moved = Reply::error(308, json!({})).header("location", "http://127.0.0.1:1/");
        assert_eq!(pair.error(moved).await.diagnostic.code(), "model::wrong_url");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    for protocol in BOTH {
        let pair = Pair::with(protocol, |settings| {
            settings.base_url = "http://127.0.0.1:1/v1".to_owned();
        })
        .await;
        let error = pair.ask(&[user("go")]).await.expect_err("nobody listens");
        assert_eq!(error.diagnostic.code(), "model::unreachable");
        assert!(error.diagnostic.message().contains("127.0.0.1:1"));
        assert_eq!(error.retry, later(None));
    }
}

#[tokio::test]
async fn a_server_without_a_key_gets_no_header() {
    for protocol in BOTH {
        let pair = Pair::with(protocol, |settings| settings.key = Key::default()).await;
        pair.answer(Reply::text("hello")).await;
        assert_eq!(pair.last().header("authorization"), None);
    }
}

#[tokio::test]
async fn a_script_serves_many_runs_from_what_they_send() {
    let pair = Pair::start(Protocol::Chat).await;
    pair.wire.otherwise(|seen| {
        if seen.outputs().is_empty() {
            Reply::calls([("shell", json!(PWD))])
        } else {
            Reply::text("done")
        }
    });
    assert_eq!(
        pair.ask(&[user("go")]).await.expect("an answer").calls().count(),
        1
    );
}

#[tokio::test]
async fn a_used_up_list_says_so() {
    let pair = Pair::start(Protocol::Chat).await;
    let error = pair.ask(&[user("go")]).await.expect_err("nothing left");
    assert!(error.diagnostic.message().contains("no reply left"));
}
