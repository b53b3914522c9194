//! What is not accepted: nothing is kept of it, and nothing is told.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::json;
use tidemill::clock::Clock as _;
use tidemill::run::intake::notice::Notice;
use tidemill::workflow::webhook::Webhook;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{OLD, SECRET, Serving, answer, soon, webhook};
use crate::support::project::Project;

/// The refusals that were said: of what, how many, why.
fn refusals(serving: &mut Serving) -> Vec<(String, u64, String)> {
    let said = serving.said().into_iter().filter_map(|notice| match notice {
        Notice::Refused { hook, count, why } => Some((hook, count, why)),
        _ => None,
    });
    said.collect()
}

#[tokio::test]
async fn whoever_is_not_known_learns_nothing() {
    let mut serving = Serving::open(webhook()).await;
    let now = serving.clock.now();
    let old = now.checked_sub(SignedDuration::from_secs(301)).unwrap();
    let answers = [
        answer(serving.post("/hooks/refunds").body("{}")).await,
        answer(serving.post("/hooks/nowhere").body("{}")).await,
        answer(serving.signed_by(SECRET, "/hooks/nowhere", "msg_1", "{}")).await,
        answer(serving.signed_by(OLD, "/hooks/refunds", "msg_1", "{}")).await,
        answer(serving.signed_at(old, SECRET, "/hooks/refunds", "msg_1", "{}")).await,
        answer(serving.signed("msg_1", "{}").header("webhook-signature", "v1,AAAA").body("[]")).await,
    ];
    for given in answers {
        assert_eq!(given, (401, json!({"error": "unauthorized"})));
    }
    assert!(serving.runs().await.is_empty());
    assert!(serving.project.files(".tidemill/runs").is_empty());
    // Two lines, whoever sends how much.
    let said: Vec<String> = refusals(&mut serving).into_iter().map(|(hook, ..)| hook).collect();
    assert_eq!(said, ["refunds", "a path without a webhook"]);
    serving.clock.advance(Duration::from_secs(10));
    answer(serving.signed_at(old, SECRET, "/hooks/refunds", "msg_1", "{}")).await;
    let [(hook, count, why)] = refusals(&mut serving).try_into().unwrap();
    assert_eq!((hook.as_str(), count), ("refunds", 4));
    assert!(why.contains("5 minutes"), "{why}");
}

#[tokio::test]
async fn a_recorded_request_sent_again_later_is_stale() {
    let serving = Serving::open(webhook()).await;
    let recorded = serving.signed("msg_1", "{}").build().unwrap();
    let again = recorded.try_clone().unwrap();
    assert_eq!(soon(serving.client.execute(recorded)).await.unwrap().status().as_u16(), 202);
    serving.clock.advance(Duration::from_secs(301));
    assert_eq!(soon(serving.client.execute(again)).await.unwrap().status().as_u16(), 401);
    assert_eq!(serving.runs().await.len(), 1);
}

#[tokio::test]
async fn what_is_too_large_is_not_read() {
    let serving = Serving::open(Webhook { max_body: 1_000, ..webhook() }).await;
    let fits = "x".repeat(1_000);
    assert_eq!(answer(serving.signed("msg_1", &fits)).await.0, 202);
    let large = "x".repeat(1_001);
    let (status, document) = answer(serving.signed("msg_2", &large)).await;
    assert_eq!((status, document), (413, json!({"error": "payload too large"})));
    // Nor where the head does not say how large it is.
    let mut socket = connect(&serving).await;
    let head = "POST /hooks/refunds HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunk = format!("{:x}\r\n{fits}\r\n", fits.len());
    socket.write_all(format!("{head}{chunk}{chunk}").as_bytes()).await.unwrap();
    assert!(read(&mut socket).await.starts_with("HTTP/1.1 413 "));
    assert_eq!(serving.runs().await.len(), 1);
}

#[tokio::test]
async fn a_body_that_never_ends_is_waited_for_for_so_long() {
    let serving = Serving::open(webhook()).await;
    let mut socket = connect(&serving).await;
    let head = "POST /hooks/refunds HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nhalf";
    socket.write_all(head.as_bytes()).await.unwrap();
    serving.sleepers(1).await;
    serving.clock.advance(Duration::from_secs(30));
    let text = read(&mut socket).await;
    assert!(text.starts_with("HTTP/1.1 408 ") && text.contains("connection: close"), "{text}");
}

#[tokio::test]
async fn a_connection_that_says_nothing_is_closed() {
    let serving = Serving::open(webhook()).await;
    let mut socket = connect(&serving).await;
    assert_eq!(answer(serving.signed("msg_1", "{}")).await.0, 202);
    // From here on time passes as soon as nobody has anything else to do.
    tokio::time::pause();
    assert_eq!(read(&mut socket).await, "");
}

#[tokio::test]
async fn a_flood_is_told_when_to_come_back() {
    let mut serving = Serving::open(Webhook { rate: 2.0, ..webhook() }).await;
    for id in ["msg_1", "msg_2"] {
        assert_eq!(answer(serving.signed(id, "{}")).await.0, 202);
    }
    let response = soon(serving.signed("msg_3", "{}").send()).await.unwrap();
    assert_eq!(response.status().as_u16(), 429);
    assert_eq!(response.headers()["retry-after"], "1");
    // What nobody signed takes nothing from those who did, and neither do repeats.
    for _ in 0..5 {
        assert_eq!(answer(serving.post("/hooks/refunds").body("{}")).await.0, 401);
        assert_eq!(answer(serving.signed("msg_1", "{}")).await.0, 202);
    }
    serving.clock.advance(Duration::from_secs(1));
    assert_eq!(answer(serving.signed("msg_3", "{}")).await.0, 202);
    assert_eq!(serving.runs().await.len(), 3);
    assert_eq!(refusals(&mut serving)[0].2, "more came than its `rate`");
}

#[tokio::test]
async fn a_form_that_cannot_be_read_is_told_to_its_sender() {
    let serving = Serving::open(webhook()).await;
    let mut request = serving.signed("msg_1", "no form").build().unwrap();
    request.headers_mut().insert("content-type", "multipart/form-data".parse().unwrap());
    let response = soon(serving.client.execute(request)).await.unwrap();
    assert_eq!(response.status().as_u16(), 400);
    assert_eq!(
        response.text().await.unwrap().trim(),
        r#"{"error":"a multipart/form-data without a boundary"}"#
    );
    assert!(serving.runs().await.is_empty());
}

#[tokio::test]
async fn where_nothing_can_be_kept_nothing_is_accepted_and_the_sender_comes_back() {
    let project = Project::new().config("[watch]\nmin_free = \"900000GB\"\n");
    let mut serving = Serving::of(project, webhook()).await;
    let response = soon(serving.signed("msg_1", "{}").send()).await.unwrap();
    assert_eq!(response.status().as_u16(), 503);
    assert_eq!(response.headers()["retry-after"], "11");
    assert!(serving.runs().await.is_empty());
    assert!(serving.project.files(".tidemill/runs").is_empty());
    assert!(refusals(&mut serving)[0].2.starts_with("watch::low_disk: "));
}

async fn connect(serving: &Serving) -> TcpStream {
    TcpStream::connect(serving.base.strip_prefix("http://").unwrap()).await.unwrap()
}

/// The head of an answer, and what came with it.
async fn read(socket: &mut TcpStream) -> String {
    let mut bytes = [0; 1024];
    let count = soon(socket.read(&mut bytes)).await.unwrap();
    String::from_utf8_lossy(&bytes[..count]).into_owned()
}
