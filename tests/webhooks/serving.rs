//! The server itself: what it is asked besides, how it starts and how it stops.

use std::time::Duration;

use serde_json::json;
use tidemill::run::hooks::Table;
use tidemill::serve::Server;
use tidemill::workflow::webhook::{Scheme, Webhook};

use super::{SECRET, Serving, answer, env, route, run_of, soon, webhook};

#[tokio::test]
async fn it_says_that_it_is_there_and_takes_posts_only() {
    let serving = Serving::open(webhook()).await;
    let get = |path: &str| serving.client.get(format!("{}{path}", serving.base)).send();
    let health = soon(get("/healthz")).await.unwrap();
    assert_eq!((health.status().as_u16(), health.text().await.unwrap().as_str()), (200, "ok\n"));
    let wrong = soon(get("/hooks/refunds")).await.unwrap();
    assert_eq!((wrong.status().as_u16(), &wrong.headers()["allow"]), (405, &"POST".parse().unwrap()));
    assert_eq!(soon(get("/")).await.unwrap().status().as_u16(), 404);
}

#[tokio::test]
async fn webhooks_are_replaced_while_it_serves() {
    let serving = Serving::open(webhook()).await;
    let moved = Webhook { path: "shop/refunds".to_owned(), secrets: vec!["OLD".to_owned()], ..webhook() };
    serving.hooks.set(Table::of(&[route(vec![moved])], &env).unwrap());
    assert_eq!(answer(serving.signed("msg_1", "{}")).await.0, 401);
    assert_eq!(answer(serving.signed_by(super::OLD, "/hooks/shop/refunds", "msg_1", "{}")).await.0, 202);
}

#[tokio::test]
async fn a_port_in_use_is_said_with_what_to_do() {
    let serving = Serving::open(webhook()).await;
    let address = serving.base.strip_prefix("http://").unwrap().parse().unwrap();
    let error = Server::bind(address).await.unwrap_err();
    assert_eq!(error.code(), "serve::listen");
    assert!(error.message().contains(&address.to_string()));
    assert!(error.advice().unwrap().contains("[server]"), "{:?}", error.advice());
}

#[tokio::test]
async fn secrets_that_are_missing_or_none_are_told_all_at_once() {
    let of = |secrets: &[&str], scheme: Scheme| {
        let secrets = secrets.iter().map(|name| (*name).to_owned()).collect();
        Table::of(&[route(vec![Webhook { secrets, scheme, ..webhook() }])], &env).unwrap_err().report()
    };
    let missing = of(&["NOWHERE"], Scheme::Standard);
    assert_eq!(missing.code, "hooks::no_secret");
    assert!(missing.message.contains("`NOWHERE`") && missing.message.contains("`refunds`"), "{missing:?}");
    let short = of(&["SHORT"], Scheme::Github);
    assert_eq!(short.code, "hooks::bad_secret");
    assert_eq!(of(&["SHORT"], Scheme::Standard).code, "hooks::bad_secret");
    let both = of(&["NOWHERE", "SHORT"], Scheme::Standard);
    assert_eq!(both.related.len(), 2);
    let text = serde_json::to_string(&[missing, short, both]).unwrap();
    assert!(!text.contains(&env("SHORT").unwrap()), "{text}");
}

#[tokio::test]
async fn who_waits_when_it_stops_is_answered_and_nobody_else_is_taken() {
    let mut serving = Serving::open(webhook()).await;
    let waiting = answer(serving.signed_by(SECRET, "/hooks/refunds?wait=60", "msg_1", "{}"));
    let stopping = async {
        serving.sleepers(1).await;
        serving.hooks.close();
        serving.stop.finish();
    };
    let ((status, document), ()) = tokio::join!(waiting, stopping);
    assert_eq!(status, 202);
    run_of(&document);
    soon(&mut serving.server).await.unwrap();
    assert!(soon(serving.signed("msg_2", "{}").send()).await.is_err(), "nobody listens any more");
    assert_eq!(serving.runs().await.len(), 1);
}

#[tokio::test]
async fn a_connection_that_says_nothing_does_not_hold_up_the_end() {
    let mut serving = Serving::open(webhook()).await;
    let socket = tokio::net::TcpStream::connect(serving.base.strip_prefix("http://").unwrap()).await.unwrap();
    assert_eq!(answer(serving.signed("msg_1", "{}")).await.1["error"], json!(null));
    serving.stop.finish();
    let passing = async {
        serving.sleepers(1).await;
        serving.clock.advance(Duration::from_secs(5));
        std::future::pending::<()>().await;
    };
    tokio::select! {
        ended = soon(async { while !serving.server.is_finished() { tokio::task::yield_now().await } }) => ended,
        () = passing => unreachable!(),
    }
    drop(socket);
    soon(&mut serving.server).await.unwrap();
}
