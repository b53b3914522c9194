//! What goes out, what comes of it, and when it is tried again.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use tidemill::clock::Clock as _;
use tidemill::diagnostic::Diagnostic;
use tidemill::event::What;
use tidemill::event::id::Digest;
use tidemill::event::state::RunState;
use tidemill::event::usage::{Cost, Usage};
use tidemill::run::intake::notice::Notice;
use tidemill::store::{Delivery, DeliveryState};
use tidemill::trigger::webhook::{Headers, Key, Request, verify};
use tidemill::workflow::notify::{Address, Moment, Notify};
use tidemill::workflow::webhook::Scheme;

use super::{SECRET, Telling};
use crate::support::receiver::{Got, Says};

fn status(status: u16) -> Says {
    Says::Status(status, &[], "no".to_owned())
}

/// A run that succeeded, of which one target is told.
async fn one(telling: &Telling) -> Delivery {
    let run = telling.queue("20261130-230000-aaaa", &[telling.target(&[Moment::Succeeded])]).await;
    telling.end(&run, RunState::Succeeded).await;
    telling.only().await
}

#[tokio::test]
async fn a_message_is_a_cloud_event_that_says_how_the_run_ended() {
    let telling = Telling::open().await;
    let run = telling.queue("20261130-230000-aaaa", &[telling.target(&[Moment::Succeeded])]).await;
    for what in [
        What::ArtifactCollected { path: "output/a.txt".to_owned(), size: 1, digest: Digest::of("old") },
        What::ArtifactCollected { path: "output/a.txt".to_owned(), size: 3, digest: Digest::of("new") },
        What::Published {
            folder: "outbox/refunds/x".to_owned(),
            artifacts: vec!["outbox/refunds/x/a.txt".to_owned()],
        },
        What::RunEnded {
            state: RunState::Succeeded,
            report: None,
            usage: Usage::default(),
            cost: Some(Cost::from_usd(0.25)),
        },
    ] {
        telling.store.append(&run, what).await.unwrap();
    }
    assert_eq!(telling.send().await, 1);
    let [got] = telling.receiver.got().try_into().unwrap();
    let got: Got = got;
    assert_eq!(got.header("content-type"), "application/cloudevents+json; charset=utf-8");
    assert_eq!(got.header("webhook-signature"), "", "nothing is signed without a secret");
    let event = got.event();
    let at: Timestamp = event["time"].as_str().unwrap().parse().unwrap();
    assert_eq!(at, telling.only().await.at);
    let queued = telling.store.run(&run).await.unwrap().unwrap().queued_at;
    let wanted = json!({
        "specversion": "1.0",
        "id": "msg_20261130-230000-aaaa-6-1",
        "source": "tidemill/workflows/refunds",
        "type": "tidemill.run.succeeded",
        "subject": "20261130-230000-aaaa",
        "time": event["time"],
        "sequence": "0000000006",
        "datacontenttype": "application/json",
        "data": {
            "workflow": "refunds",
            "run": "20261130-230000-aaaa",
            "trigger": "manual",
            "state": "succeeded",
            "queued_at": queued.to_string(),
            "report": null,
            "published": "outbox/refunds/x",
            "artifacts": [{ "path": "output/a.txt", "size": 3, "sha256": Digest::of("new") }],
            "turns": 0,
            "tokens": 0,
            "cost_usd": 0.25,
        },
    });
    assert_eq!(event, wanted);
    let came = telling.only().await;
    assert_eq!((came.state, came.status, came.attempts), (DeliveryState::Delivered, Some(200), 1));
}

#[tokio::test]
async fn a_failure_says_why() {
    let telling = Telling::open().await;
    let run = telling.queue("20261130-230000-aaaa", &[telling.target(&Moment::BAD_ENDS)]).await;
    let report = Diagnostic::new("run::interrupted", "the process ended").help("run it again").report();
    let (usage, state) = (Usage::default(), RunState::Failed);
    telling
        .store
        .append(&run, What::RunEnded { state, report: Some(report), usage, cost: None })
        .await
        .unwrap();
    telling.send().await;
    let data = &telling.receiver.got()[0].event()["data"];
    assert_eq!(data["state"], "failed");
    let wanted = json!({"code": "run::interrupted", "message": "the process ended", "help": "run it again"});
    assert_eq!(data["report"], wanted);
    assert_eq!(data["artifacts"], json!([]));
}

#[tokio::test]
async fn a_receiver_can_check_who_sent_it_in_every_attempt() {
    let telling = Telling::open().await;
    let target = Notify { secret: Some("SECRET".to_owned()), ..telling.target(&[Moment::Succeeded]) };
    let run = telling.queue("20261130-230000-aaaa", &[target]).await;
    telling.end(&run, RunState::Succeeded).await;
    telling.receiver.says(status(500));
    telling.send().await;
    assert_eq!(telling.later(Duration::from_secs(600)).await, 1);
    let [first, second]: [Got; 2] = telling.receiver.got().try_into().unwrap();
    assert_eq!((first.header("webhook-id"), &first.body), (second.header("webhook-id"), &second.body));
    assert_ne!(first.header("webhook-timestamp"), second.header("webhook-timestamp"));
    let now = telling.clock.now();
    let keys = [Key::standard(SECRET).unwrap()];
    let names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
    let headers = Headers::new(names.map(|name| (name.to_owned(), second.header(name).to_owned())));
    let request = Request { path: String::new(), query: String::new(), headers, body: second.body.into() };
    assert_eq!(verify(&Scheme::Standard, &keys, &request, now), Ok(()));
}

#[tokio::test]
async fn what_fails_is_tried_for_three_days_and_then_given_up() {
    let telling = Telling::open().await;
    one(&telling).await;
    for _ in 0..10 {
        telling.receiver.says(status(503));
    }
    assert_eq!(telling.send().await, 1);
    let mut passed = 0.0;
    for wait in [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400] {
        let due = telling.only().await.due;
        let left = Duration::try_from(due.duration_since(telling.clock.now())).unwrap();
        assert!((1.0..=1.11).contains(&(left.as_secs_f64() / f64::from(wait))), "{wait}: {left:?}");
        // Not a moment too early.
        assert_eq!(telling.later(left.saturating_sub(Duration::from_millis(1))).await, 0, "{wait}");
        assert_eq!(telling.later(Duration::from_millis(2)).await, 1, "{wait}");
        passed += left.as_secs_f64();
    }
    assert!(passed > 3.0 * 86_400.0, "{passed}");
    let came = telling.only().await;
    assert_eq!((came.state, came.attempts, came.status), (DeliveryState::Failed, 10, Some(503)));
    assert_eq!((came.error.as_deref(), came.answer.as_deref()), (Some("it answered 503"), Some("no")));
    assert_eq!(telling.later(Duration::from_secs(1_000_000)).await, 0);
    assert_eq!(telling.receiver.got().len(), 10);
    // Said once when it began and once when it was over.
    let states: Vec<&str> = telling
        .notices
        .lock()
        .unwrap()
        .iter()
        .map(|notice| match notice {
            Notice::Undelivered { state, .. } => *state,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(states, ["waiting", "failed"]);
}

#[tokio::test]
async fn a_receiver_says_when_to_come_back() {
    let telling = Telling::open().await;
    one(&telling).await;
    telling.receiver.says(Says::Status(429, &[("retry-after", "900")], String::new()));
    telling.send().await;
    assert_eq!(telling.later(Duration::from_secs(899)).await, 0);
    assert_eq!(telling.later(Duration::from_secs(2)).await, 1);
    assert_eq!(telling.only().await.state, DeliveryState::Delivered);
}

#[tokio::test]
async fn a_receiver_that_is_gone_is_left_alone_until_somebody_asks() {
    let telling = Telling::open().await;
    let first = one(&telling).await;
    telling.receiver.says(status(410));
    telling.send().await;
    assert_eq!(telling.only().await.state, DeliveryState::Gone);
    // Neither of later runs.
    let again = telling.queue("20261130-230000-bbbb", &[telling.target(&[Moment::Succeeded])]).await;
    telling.end(&again, RunState::Succeeded).await;
    assert_eq!(telling.later(Duration::from_secs(1_000_000)).await, 0);
    assert_eq!(telling.all().await[1].state, DeliveryState::Gone);
    // Another address of the same workflow is another target.
    let other =
        Notify { url: Address::Url(telling.receiver.url("/new")), ..telling.target(&[Moment::Succeeded]) };
    let moved = telling.queue("20261130-230000-cccc", &[other]).await;
    telling.end(&moved, RunState::Succeeded).await;
    assert_eq!(telling.send().await, 1);
    assert_eq!(telling.receiver.got()[1].path, "/new");
    telling.store.redeliver(first.id).await.unwrap();
    assert_eq!(telling.send().await, 1);
    let back = telling.queue("20261130-230000-dddd", &[telling.target(&[Moment::Succeeded])]).await;
    telling.end(&back, RunState::Succeeded).await;
    assert_eq!(telling.send().await, 1);
    let error = telling.store.redeliver(99).await.unwrap_err();
    assert_eq!(error.code(), "usage::unknown_delivery");
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let telling = Telling::open().await;
    one(&telling).await;
    telling.receiver.says(Says::Status(307, &[("location", "/elsewhere")], String::new()));
    telling.send().await;
    assert_eq!(telling.receiver.got().len(), 1);
    let came = telling.only().await;
    assert_eq!(came.state, DeliveryState::Waiting);
    assert_eq!(came.error.as_deref(), Some("it answered 307, and redirects are not followed"));
}

#[tokio::test]
async fn a_receiver_that_says_nothing_is_not_waited_for_long() {
    let telling = Telling::open().await;
    one(&telling).await;
    telling.receiver.says(Says::Nothing);
    let passing = async {
        while telling.receiver.got().is_empty() || telling.clock.sleepers() == 0 {
            tokio::task::yield_now().await;
        }
        telling.clock.advance(Duration::from_secs(15));
    };
    let (sent, ()) = tokio::join!(telling.deliveries.round(), passing);
    assert_eq!(sent.unwrap(), 1);
    assert_eq!(telling.only().await.error.as_deref(), Some("it did not answer within 15 seconds"));
}

#[tokio::test]
async fn addresses_that_are_not_public_are_never_asked() {
    let telling = Telling::with("").await;
    one(&telling).await;
    telling.send().await;
    let error = telling.only().await.error.unwrap();
    assert!(error.contains("127.0.0.1 is not public") && error.contains("[notify]"), "{error}");
    assert!(telling.receiver.got().is_empty());
}

#[tokio::test]
async fn an_address_that_is_a_secret_is_shown_nowhere() {
    let telling = Telling::open().await;
    let target = Notify { url: Address::Secret("URL".to_owned()), ..telling.target(&[Moment::Succeeded]) };
    let run = telling.queue("20261130-230000-aaaa", &[target]).await;
    telling.end(&run, RunState::Succeeded).await;
    let page = "cannot POST /services/T0/key-in-the-path?token=abc".to_owned();
    telling.receiver.says(Says::Status(404, &[], page));
    telling.send().await;
    assert_eq!(telling.receiver.got()[0].path, "/services/T0/key-in-the-path?token=abc");
    let came = telling.only().await;
    assert_eq!(came.answer.as_deref(), Some("cannot POST /...?..."));
    let shown = format!("{came:?} {:?}", telling.notices.lock().unwrap());
    assert!(!shown.contains("key-in-the-path") && !shown.contains("token=abc"), "{shown}");
    let missing =
        Notify { url: Address::Secret("NOWHERE".to_owned()), ..telling.target(&[Moment::Succeeded]) };
    let run = telling.queue("20261130-230000-bbbb", &[missing]).await;
    telling.end(&run, RunState::Succeeded).await;
    telling.send().await;
    let error = telling.all().await[1].error.clone();
    assert_eq!(error.as_deref(), Some("the variable NOWHERE of its secret is not set"));
}

#[tokio::test]
async fn a_long_answer_is_kept_in_part() {
    let telling = Telling::open().await;
    one(&telling).await;
    telling.receiver.says(Says::Status(500, &[], "x\u{1b}[2J".repeat(1_000)));
    telling.send().await;
    let answer = telling.only().await.answer.unwrap();
    assert!(answer.starts_with("x\\u{1b}[2J") && answer.len() < 3_000, "{}", answer.len());
}

#[tokio::test]
async fn the_messages_of_a_run_arrive_in_its_order() {
    let telling = Telling::open().await;
    let run = telling.queue("20261130-230000-aaaa", &[telling.target(&Moment::ALL)]).await;
    telling.receiver.says(status(500));
    telling.send().await;
    telling.enter(&run, RunState::Preparing).await;
    telling.end(&run, RunState::Succeeded).await;
    // Another run does not wait for it.
    telling.queue("20261130-230000-bbbb", &[telling.target(&Moment::ALL)]).await;
    assert_eq!(telling.send().await, 1);
    assert_eq!(telling.later(Duration::from_secs(10)).await, 3);
    let told: Vec<String> = telling
        .receiver
        .got()
        .iter()
        .map(|got| {
            let event = got.event();
            format!("{} {}", event["subject"].as_str().unwrap(), event["type"].as_str().unwrap())
        })
        .collect();
    let wanted = [
        "20261130-230000-aaaa tidemill.run.queued",
        "20261130-230000-bbbb tidemill.run.queued",
        "20261130-230000-aaaa tidemill.run.queued",
        "20261130-230000-aaaa tidemill.run.started",
        "20261130-230000-aaaa tidemill.run.succeeded",
    ];
    assert_eq!(told, wanted);
    // What was true then is told, however late.
    assert_eq!(telling.receiver.got()[3].event()["data"]["state"], "preparing");
}

#[tokio::test]
async fn a_message_whose_process_was_killed_is_sent_again_under_the_same_id() {
    let telling = Telling::open().await;
    let before = one(&telling).await;
    telling.receiver.says(Says::Nothing);
    // The process dies while the receiver already has it.
    tokio::select! {
        _ = telling.deliveries.round() => unreachable!(),
        () = async { while telling.receiver.got().is_empty() { tokio::task::yield_now().await } } => {}
    }
    assert_eq!(telling.only().await, before);
    assert_eq!(telling.send().await, 1);
    let ids: Vec<serde_json::Value> =
        telling.receiver.got().iter().map(|got| got.event()["id"].clone()).collect();
    assert_eq!(ids[0], ids[1]);
}
