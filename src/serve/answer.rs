//! What the sender of a request reads.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::{Value, json};

use crate::run::hooks::Answer;

/// A webhook's answer as HTTP.
pub(super) fn of(answer: Answer) -> Response {
    match answer {
        Answer::Queued(run) => document(StatusCode::ACCEPTED, &json!({ "run": run })),
        Answer::Ended(end) => document(StatusCode::OK, &json!(end)),
        Answer::Pong => document(StatusCode::OK, &json!({ "ok": true })),
        Answer::Challenge(text) => text_of(text),
        Answer::Refused => error(StatusCode::UNAUTHORIZED, "unauthorized"),
        Answer::TooMany(wait) => later(StatusCode::TOO_MANY_REQUESTS, "too many requests", wait),
        Answer::Malformed(why) => error(StatusCode::BAD_REQUEST, &why),
        Answer::Busy(wait) => later(StatusCode::SERVICE_UNAVAILABLE, "try again later", wait),
        Answer::Broken => error(StatusCode::INTERNAL_SERVER_ERROR, "something is wrong here"),
    }
}

/// An error in one sentence.
pub(super) fn error(status: StatusCode, why: &str) -> Response {
    document(status, &json!({ "error": why }))
}

fn later(status: StatusCode, why: &str, wait: Duration) -> Response {
    let mut response = error(status, why);
    // Whole seconds, and never too early.
    let seconds = wait.as_secs().saturating_add(1);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    response
}

fn document(status: StatusCode, value: &Value) -> Response {
    with(status, "application/json", value.to_string() + "\n")
}

/// Never a page: a browser that opens it runs nothing.
fn text_of(text: String) -> Response {
    with(StatusCode::OK, "text/plain; charset=utf-8", text)
}

fn with(status: StatusCode, kind: &'static str, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
