//! Reading a body that may be too large or never end.

use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;

use crate::clock::Clock;

/// A body is here by then.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// All of a body of `limit` bytes at most, or the status that says why not. `said` is its length as the head says it.
pub(super) async fn read(
    body: Body,
    said: Option<u64>,
    limit: u64,
    clock: &dyn Clock,
) -> Result<Bytes, StatusCode> {
    // Nobody needs to send what is not taken.
    if said.is_some_and(|said| said > limit) {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    tokio::select! {
        read = whole(body, limit) => read,
        () = clock.sleep(PATIENCE) => Err(StatusCode::REQUEST_TIMEOUT),
    }
}

async fn whole(mut body: Body, limit: u64) -> Result<Bytes, StatusCode> {
    let mut read = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            return Err(StatusCode::BAD_REQUEST);
        };
        if let Ok(data) = frame.into_data() {
            if (read.len() + data.len()) as u64 > limit {
                return Err(StatusCode::PAYLOAD_TOO_LARGE);
            }
            read.extend_from_slice(&data);
        }
    }
    Ok(read.freeze())
}
