//! Each scheme with good, bad, changed and stale signatures; those that services publish as examples among them.

use super::*;

const BODY: &str = r#"{"test": 2432232314}"#;
const AT: i64 = 1_614_265_330;

fn request(headers: &[(&str, &str)], body: &str) -> Request {
    Request {
        path: "hook".to_owned(),
        query: String::new(),
        headers: Headers::new(headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))),
        body: body.to_owned().into(),
    }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

fn keys(scheme: &Scheme, secrets: &[&str]) -> Vec<Key> {
    secrets.iter().map(|secret| Key::parse(scheme, secret).unwrap()).collect()
}

/// A request that `secret` signed.
fn signed_by(scheme: &Scheme, secret: &str, body: &str) -> Request {
    let key = &keys(scheme, &[secret])[0];
    let hexed = |pieces: &[&[u8]]| hex::encode(key.sign(pieces));
    let time = AT.to_string();
    let headers: Vec<(String, String)> = match scheme {
        Scheme::Standard => vec![
            ("webhook-id".into(), "msg_1".into()),
            ("webhook-timestamp".into(), time.clone()),
            ("webhook-signature".into(), key.sign_standard("msg_1", AT, body.as_bytes())),
        ],
        Scheme::Github => {
            vec![("x-hub-signature-256".into(), format!("sha256={}", hexed(&[body.as_bytes()])))]
        }
        Scheme::Stripe => {
            let tag = hexed(&[time.as_bytes(), b".", body.as_bytes()]);
            vec![("stripe-signature".into(), format!("t={time},v1={},v1={tag},v0=00", "00".repeat(32)))]
        }
        Scheme::Slack => vec![
            ("x-slack-request-timestamp".into(), time.clone()),
            (
                "x-slack-signature".into(),
                format!("v0={}", hexed(&[b"v0:", time.as_bytes(), b":", body.as_bytes()])),
            ),
        ],
        Scheme::Hmac(name) => vec![(name.clone(), STANDARD.encode(key.sign(&[body.as_bytes()])))],
    };
    Request { headers: Headers::new(headers), ..request(&[], body) }
}

fn schemes() -> Vec<Scheme> {
    Scheme::WORDS.into_iter().chain([Scheme::Hmac("x-signature".to_owned())]).collect()
}

/// Base64 of 24 bytes: a secret of every scheme.
const NEW: &str = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OLD: &str = "AAKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

#[test]
fn the_vector_of_standard_webhooks_is_taken_under_both_names() {
    let keys = keys(&Scheme::Standard, &["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]);
    for prefix in ["webhook", "svix"] {
        let names = ["id", "timestamp", "signature"].map(|name| format!("{prefix}-{name}"));
        let headers = [
            (names[0].as_str(), "msg_p5jXN8AQM9LWM0D4loKWxJek"),
            (names[1].as_str(), "1614265330"),
            (names[2].as_str(), "v1a,AAAA v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
        ];
        assert_eq!(verify(&Scheme::Standard, &keys, &request(&headers, BODY), at(AT)), Ok(()));
        let other = request(&headers, r#"{"test": 2432232315}"#);
        assert_eq!(verify(&Scheme::Standard, &keys, &other, at(AT)), Err(Refusal::Forged));
        // An id is signed as well.
        let renamed = [(names[0].as_str(), "msg_2"), headers[1], headers[2]];
        assert_eq!(verify(&Scheme::Standard, &keys, &request(&renamed, BODY), at(AT)), Err(Refusal::Forged));
    }
}

#[test]
fn github_is_taken_as_its_own_page_says() {
    // From "Validating webhook deliveries": secret, payload and signature.
    let keys = keys(&Scheme::Github, &["It's a Secret to Everybody"]);
    let signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    let given = request(&[("x-hub-signature-256", signature)], "Hello, World!");
    assert_eq!(verify(&Scheme::Github, &keys, &given, at(AT)), Ok(()));
}

#[test]
fn slack_is_taken_as_its_own_page_says() {
    // From "Verifying requests from Slack".
    let keys = keys(&Scheme::Slack, &["8f742231b10e8888abcd99yyyzzz85a5"]);
    let body = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&\
                channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&\
                response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&\
                trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    let signature = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";
    let headers = [("x-slack-request-timestamp", "1531420618"), ("x-slack-signature", signature)];
    assert_eq!(verify(&Scheme::Slack, &keys, &request(&headers, body), at(1_531_420_618)), Ok(()));
}

#[test]
fn every_scheme_takes_what_one_of_its_secrets_signed() {
    for scheme in schemes() {
        for (secrets, outcome) in [
            (&[NEW][..], Ok(())),
            (&[OLD, NEW], Ok(())),
            (&[NEW, OLD], Ok(())),
            (&[OLD], Err(Refusal::Forged)),
            (&[], Err(Refusal::Forged)),
        ] {
            let given = signed_by(&scheme, NEW, BODY);
            assert_eq!(
                verify(&scheme, &keys(&scheme, secrets), &given, at(AT)),
                outcome,
                "{scheme:?} {secrets:?}"
            );
        }
    }
}

#[test]
fn every_scheme_refuses_another_body_and_missing_headers() {
    for scheme in schemes() {
        let keys = keys(&scheme, &[NEW]);
        let given = signed_by(&scheme, NEW, BODY);
        let changed = Request { body: "{}".into(), ..given.clone() };
        assert_eq!(verify(&scheme, &keys, &changed, at(AT)), Err(Refusal::Forged), "{scheme:?}");
        let bare = Request { headers: Headers::default(), ..given };
        assert_eq!(verify(&scheme, &keys, &bare, at(AT)), Err(Refusal::Unsigned), "{scheme:?}");
    }
}

#[test]
fn what_was_signed_long_ago_is_stale_where_the_time_is_signed() {
    let window = i64::try_from(WINDOW.as_secs()).unwrap();
    for scheme in schemes() {
        let keys = keys(&scheme, &[NEW]);
        let given = signed_by(&scheme, NEW, BODY);
        let timed = matches!(scheme, Scheme::Standard | Scheme::Stripe | Scheme::Slack);
        for (away, fits) in [(window, true), (-window, true), (window + 1, !timed), (-window - 1, !timed)] {
            let outcome = if fits { Ok(()) } else { Err(Refusal::Stale) };
            assert_eq!(verify(&scheme, &keys, &given, at(AT + away)), outcome, "{scheme:?} {away}");
        }
    }
}

#[test]
fn signatures_that_are_no_text_of_the_scheme_are_none() {
    for (scheme, headers) in [
        (Scheme::Github, &[("x-hub-signature-256", "757107ea")][..]),
        (Scheme::Github, &[("x-hub-signature-256", "sha256=xyz")]),
        (Scheme::Stripe, &[("stripe-signature", "v1=00")]),
        (Scheme::Stripe, &[("stripe-signature", "t=soon,v1=00")]),
        (
            Scheme::Standard,
            &[("webhook-id", "1"), ("webhook-timestamp", "1"), ("webhook-signature", "v2,AAAA")],
        ),
        (Scheme::Slack, &[("x-slack-signature", "v0=00"), ("x-slack-request-timestamp", "-")]),
        (Scheme::Hmac("x".into()), &[("x", "%")]),
    ] {
        let keys = keys(&scheme, &[NEW]);
        let outcome = verify(&scheme, &keys, &request(headers, BODY), at(AT));
        assert_eq!(outcome, Err(Refusal::Unsigned), "{scheme:?}");
    }
}

#[test]
fn a_repeat_is_known_by_the_senders_id_else_by_all_of_it_for_a_while() {
    let by_id = |id: &str| Identity { digest: Digest::of(id), window: None };
    for (scheme, headers, body, wanted) in [
        (Scheme::Standard, &[("webhook-id", "a"), ("idempotency-key", "b")][..], "{}", by_id("a")),
        (Scheme::Github, &[("x-github-delivery", "a")], "{}", by_id("a")),
        (Scheme::Stripe, &[], r#"{"id": "evt_1"}"#, by_id("evt_1")),
        (Scheme::Slack, &[], r#"{"event_id": "Ev1"}"#, by_id("Ev1")),
        (Scheme::Hmac("x".into()), &[("idempotency-key", "b")], "{}", by_id("b")),
    ] {
        assert_eq!(identity(&scheme, &request(headers, body)), wanted, "{scheme:?}");
    }
    let bare = |query: &str, body: &str| {
        identity(&Scheme::Github, &Request { query: query.to_owned(), ..request(&[], body) })
    };
    assert_eq!(bare("", "{}"), bare("", "{}"));
    let empty: &[(&str, &str)] = &[("x-github-delivery", ""), ("idempotency-key", "")];
    assert_eq!(identity(&Scheme::Github, &request(empty, "{}")), bare("", "{}"), "an empty id is none");
    let keyed: &[(&str, &str)] = &[("x-github-delivery", ""), ("idempotency-key", "k")];
    assert_eq!(identity(&Scheme::Github, &request(keyed, "{}")), by_id("k"));
    assert_eq!(bare("", "{}").window, Some(WINDOW));
    assert_ne!(bare("", "{}").digest, bare("a=1", "{}").digest);
    assert_ne!(bare("", "{}").digest, bare("", "[]").digest);
}

#[test]
fn slacks_challenge_is_for_slack() {
    let body = r#"{"type": "url_verification", "challenge": "3eZbrw1a"}"#;
    assert_eq!(challenge(&Scheme::Slack, &request(&[], body)).as_deref(), Some("3eZbrw1a"));
    assert_eq!(challenge(&Scheme::Github, &request(&[], body)), None);
    assert_eq!(challenge(&Scheme::Slack, &request(&[], r#"{"type": "event_callback"}"#)), None);
}
