//! What is accepted, once.

use std::time::Duration;

use serde_json::json;
use tidemill::event::finish::Finish;
use tidemill::event::id::Digest;
use tidemill::event::state::RunState;
use tidemill::event::trigger::Trigger;
use tidemill::event::usage::Usage;
use tidemill::event::{What, payload::Payload};
use tidemill::run::intake::notice::Notice;
use tidemill::store::{Heard, NewRun, RequestKey};
use tidemill::workflow::webhook::{Scheme, Webhook};

use super::{OLD, SECRET, Serving, answer, run_of, soon, webhook};

const BODY: &str = r#"{"message": "my order 77 never came"}"#;

#[tokio::test]
async fn a_signed_request_is_a_queued_run_with_the_body_as_its_input() {
    let mut serving = Serving::open(webhook()).await;
    let request = serving.signed_by(SECRET, "/hooks/refunds?order=77", "msg_1", BODY);
    let (status, document) = answer(request).await;
    assert_eq!(status, 202, "{document}");
    let run = run_of(&document);
    let row = serving.store.run(&run).await.unwrap().unwrap();
    assert_eq!((row.trigger, row.state), (Trigger::Webhook, RunState::Queued));
    assert_eq!((row.workflow.as_str(), row.model.as_str()), ("refunds", "clerk"));
    assert_eq!(json!(row.params), json!({"order": "77"}));
    let [input] = row.inputs.as_slice() else { panic!("{:?}", row.inputs) };
    assert_eq!((input.path.display().as_str(), input.size), ("body.json", BODY.len() as u64));
    assert_eq!(input.digest, Digest::of(BODY));
    let kept = serving.project.path(format!(".tidemill/runs/{run}/input/0"));
    assert_eq!(std::fs::read_to_string(kept).unwrap(), BODY);
    assert_eq!(serving.said(), [Notice::Received { hook: "refunds".to_owned(), run }]);
}

#[tokio::test]
async fn both_secrets_are_good_while_one_is_changed() {
    let secrets = vec!["SECRET".to_owned(), "OLD".to_owned()];
    let serving = Serving::open(Webhook { secrets, ..webhook() }).await;
    for (secret, id) in [(SECRET, "msg_1"), (OLD, "msg_2")] {
        let (status, _) = answer(serving.signed_by(secret, "/hooks/refunds", id, BODY)).await;
        assert_eq!(status, 202, "{id}");
    }
    assert_eq!(serving.runs().await.len(), 2);
}

#[tokio::test]
async fn a_repeat_is_told_the_same_run() {
    let serving = Serving::open(webhook()).await;
    let (_, first) = answer(serving.signed("msg_1", BODY)).await;
    // Senders sign each attempt anew.
    serving.clock.advance(Duration::from_secs(3600));
    let (status, second) = answer(serving.signed("msg_1", BODY)).await;
    assert_eq!((status, &second), (202, &first));
    let (_, other) = answer(serving.signed("msg_2", BODY)).await;
    assert_ne!(other, first);
    assert_eq!(serving.runs().await.len(), 2);
}

#[tokio::test]
async fn of_many_at_once_one_makes_the_run_and_nothing_else_is_left() {
    let serving = Serving::open(webhook()).await;
    let requests = (0..8).map(|_| answer(serving.signed("msg_1", BODY)));
    let answers = futures_util::future::join_all(requests).await;
    let [run] = serving.runs().await.try_into().unwrap_or_else(|runs| panic!("{runs:?}"));
    for (status, document) in answers {
        assert_eq!((status, run_of(&document)), (202, run.id.clone()));
    }
    let files = serving.project.files(".tidemill/runs");
    assert_eq!(files, [std::path::PathBuf::from(format!("{}/input/0", run.id))]);
}

#[tokio::test]
async fn a_process_killed_before_it_answered_has_made_the_run() {
    let serving = Serving::open(webhook()).await;
    let key = RequestKey { hook: "refunds", digest: &Digest::of("msg_1"), window: None };
    let id = serving.store.fresh_id("2026-11-30T23:00:00Z".parse().unwrap()).await.unwrap();
    let at = "2026-11-30T23:00:00Z".parse().unwrap();
    let new = NewRun::new(id.clone(), "refunds", Trigger::Webhook, Digest::of("script"), "clerk", at);
    assert_eq!(serving.store.hear(&key, &new).await.unwrap(), Heard::Now);
    let (status, document) = answer(serving.signed("msg_1", BODY)).await;
    assert_eq!((status, run_of(&document)), (202, id));
    assert_eq!(serving.runs().await.len(), 1);
}

#[tokio::test]
async fn without_an_id_the_same_body_counts_once_for_five_minutes() {
    let scheme = Scheme::Hmac("x-signature".to_owned());
    let serving = Serving::open(Webhook { scheme: scheme.clone(), ..webhook() }).await;
    let key = tidemill::trigger::webhook::Key::parse(&scheme, SECRET).unwrap();
    let tag = hex::encode(key.sign(&[BODY.as_bytes()]));
    let send = |id: Option<&'static str>| {
        let request = serving.post("/hooks/refunds").header("X-Signature", &tag).body(BODY);
        answer(match id {
            Some(id) => request.header("Idempotency-Key", id),
            None => request,
        })
    };
    let (status, first) = send(None).await;
    assert_eq!(status, 202);
    assert_eq!(send(None).await.1, first);
    serving.clock.advance(Duration::from_secs(301));
    let (_, later) = send(None).await;
    assert_ne!(later, first);
    // The window is that of the newest.
    assert_eq!(send(None).await.1, later);
    let (_, named) = send(Some("order-77")).await;
    serving.clock.advance(Duration::from_secs(301));
    assert_eq!(send(Some("order-77")).await.1, named);
    assert_eq!(serving.runs().await.len(), 3);
}

#[tokio::test]
async fn files_of_a_form_are_the_inputs_and_its_fields_the_params() {
    let serving = Serving::open(webhook()).await;
    let body = "--x\r\ncontent-disposition: form-data; name=\"order\"\r\n\r\n77\r\n\
                --x\r\ncontent-disposition: form-data; name=\"f\"; filename=\"../../a.csv\"\r\n\r\none\r\n\
                --x\r\ncontent-disposition: form-data; name=\"f\"; filename=\"b.csv\"\r\n\r\ntwo\r\n--x--\r\n";
    let form = "multipart/form-data; boundary=x";
    let mut request = serving.signed("msg_1", body).build().unwrap();
    request.headers_mut().insert("content-type", form.parse().unwrap());
    let response = soon(serving.client.execute(request)).await.unwrap();
    assert_eq!(response.status().as_u16(), 202);
    let [run] = serving.runs().await.try_into().unwrap();
    let inputs: Vec<(String, Digest)> =
        run.inputs.iter().map(|input| (input.path.display(), input.digest.clone())).collect();
    assert_eq!(inputs, [("a.csv".to_owned(), Digest::of("one")), ("b.csv".to_owned(), Digest::of("two"))]);
    assert_eq!(json!(run.params), json!({"order": "77"}));
    for (index, text) in ["one", "two"].into_iter().enumerate() {
        let kept = serving.project.path(format!(".tidemill/runs/{}/input/{index}", run.id));
        assert_eq!(std::fs::read_to_string(kept).unwrap(), text);
    }
}

#[tokio::test]
async fn a_sender_who_waits_is_told_the_end() {
    let serving = Serving::open(webhook()).await;
    let waiting = answer(serving.signed_by(SECRET, "/hooks/refunds?wait=30", "msg_1", BODY));
    let ending = async {
        serving.sleepers(1).await;
        let [run] = serving.runs().await.try_into().unwrap();
        let run: tidemill::store::RunRow = run;
        for what in [
            What::ModelResponded {
                turn: 1,
                text: Payload::Inline("refunded".to_owned()),
                calls: Vec::new(),
                items: Payload::default(),
                finish: Finish::Stop,
                usage: Usage::default(),
                cost: None,
                millis: 1,
                model: None,
            },
            What::Published {
                folder: "outbox/refunds/x".to_owned(),
                artifacts: vec!["outbox/refunds/x/answer.json".to_owned()],
            },
            What::RunEnded { state: RunState::Succeeded, report: None, usage: Usage::default(), cost: None },
        ] {
            serving.store.append(&run.id, what).await.unwrap();
        }
        run.id
    };
    let ((status, document), run) = tokio::join!(waiting, ending);
    let wanted = json!({
        "run": run, "state": "succeeded", "published": "outbox/refunds/x", "artifacts": ["answer.json"],
        "answer": "refunded",
    });
    assert_eq!((status, document), (200, wanted));
    // A repeat finds it ended.
    let (status, again) = answer(serving.signed_by(SECRET, "/hooks/refunds?wait=30", "msg_1", BODY)).await;
    assert_eq!((status, &again["state"]), (200, &json!("succeeded")));
}

#[tokio::test]
async fn a_sender_who_waited_long_enough_is_told_the_run() {
    let serving = Serving::open(webhook()).await;
    // More than is waited at most.
    let waiting = answer(serving.signed_by(SECRET, "/hooks/refunds?wait=3600", "msg_1", BODY));
    let passing = async {
        for _ in 0..60 {
            serving.sleepers(1).await;
            serving.clock.advance(Duration::from_secs(1));
            tokio::task::yield_now().await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        (status, document) = waiting => {
            assert_eq!(status, 202);
            run_of(&document);
        }
        () = passing => unreachable!(),
    }
}

#[tokio::test]
async fn senders_who_only_ask_make_no_run() {
    let slack = Serving::open(Webhook { scheme: Scheme::Slack, ..webhook() }).await;
    let body = r#"{"type": "url_verification", "challenge": "3eZbrw1a"}"#;
    let key = tidemill::trigger::webhook::Key::parse(&Scheme::Slack, SECRET).unwrap();
    let time = tidemill::clock::Clock::now(slack.clock.as_ref()).as_second().to_string();
    let tag = hex::encode(key.sign(&[b"v0:", time.as_bytes(), b":", body.as_bytes()]));
    let request = slack
        .post("/hooks/refunds")
        .header("x-slack-request-timestamp", time)
        .header("x-slack-signature", format!("v0={tag}"))
        .body(body);
    let response = soon(request.send()).await.unwrap();
    assert_eq!((response.status().as_u16(), response.text().await.unwrap().as_str()), (200, "3eZbrw1a"));
    assert!(slack.runs().await.is_empty());

    let github = Serving::open(Webhook { scheme: Scheme::Github, ..webhook() }).await;
    let tag = hex::encode(key.sign(&[b"{}"]));
    let request = github
        .post("/hooks/refunds")
        .header("x-github-event", "ping")
        .header("x-github-delivery", "1")
        .header("x-hub-signature-256", format!("sha256={tag}"))
        .body("{}");
    assert_eq!(answer(request).await, (200, json!({"ok": true})));
    assert!(github.runs().await.is_empty());
}
