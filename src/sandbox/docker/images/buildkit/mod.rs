//! Builds that only BuildKit understands: secrets, mounts, here-documents.
//!
//! The engine has BuildKit built in. Its log comes in a form of its own, and secrets are asked for over a session, which
//! is why these builds have connections of their own.

mod session;
mod trace;

use std::collections::BTreeMap;
use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::{Stream, TryStreamExt as _};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;

use crate::diagnostic::{Diagnostic, Result};
use crate::sandbox::docker::Docker;
use crate::sandbox::docker::connect::dial;
use crate::sandbox::docker::images::log::Log;

use session::Session;
use trace::Trace;

/// What the engine calls its log.
const TRACE: &str = "moby.buildkit.trace";

type Body = UnsyncBoxBody<Bytes, io::Error>;

/// A build.
pub(super) struct Order {
    /// The image's name in messages.
    pub(super) name: String,
    /// Parameters of the engine's `/build`, as it names them.
    pub(super) parameters: Vec<(&'static str, String)>,
    /// Secrets by their ids.
    pub(super) secrets: BTreeMap<String, String>,
}

/// One line of the engine's answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Line {
    id: String,
    aux: Value,
    error: Option<String>,
}

impl Docker {
    /// Builds with BuildKit; the engine reads `context` as it goes.
    pub(super) async fn build_with_buildkit(
        &self,
        order: Order,
        context: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
        log: &mut Log<'_>,
    ) -> Result<()> {
        let gone = |error: String| {
            Diagnostic::new("sandbox::engine_gone", format!("cannot build {}: {error}", order.name))
                .help("does the engine still answer, and does it have BuildKit? `tidemill doctor` checks the engine")
        };
        let session = Session::new(order.secrets.clone());
        let version = self.client.client_version();
        let api = format!("/v{}.{}", version.major_version, version.minor_version);
        let asked = session.head(Request::post(format!("{api}/session"))).body(empty());
        let (response, _serving) =
            send(&self.host, asked.map_err(|error| gone(error.to_string()))?).await.map_err(gone)?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(no_buildkit(&order.name));
        }
        let _answering = session.serve(response);
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(&order.parameters)
            .append_pair("version", "2")
            .append_pair("session", session.id())
            .finish();
        let body = StreamBody::new(context.map_ok(Frame::data)).boxed_unsync();
        let asked = Request::post(format!("{api}/build?{query}"))
            .header("host", "engine")
            .header("content-type", "application/x-tar")
            .body(body);
        let (response, _building) =
            send(&self.host, asked.map_err(|error| gone(error.to_string()))?).await.map_err(gone)?;
        follow(&order.name, response, log).await
    }
}

fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// Sends a request over a connection of its own, which lasts as long as what comes with the answer.
async fn send(
    host: &str,
    request: Request<Body>,
) -> Result<(Response<Incoming>, AbortOnDropHandle<()>), String> {
    let stream = dial(host).await.map_err(|error| error.to_string())?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| error.to_string())?;
    let task = tokio::spawn(async move {
        // Its end is seen where the answer is read.
        let _ = connection.with_upgrades().await;
    });
    let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
    Ok((response, AbortOnDropHandle::new(task)))
}

/// Reads the answer line by line until the build has ended.
async fn follow(name: &str, response: Response<Incoming>, log: &mut Log<'_>) -> Result<()> {
    let status = response.status();
    let mut trace = Trace::default();
    let mut pending = Vec::new();
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame.map_err(|error| log.failed(name, &error.to_string()))?.into_data() else {
            continue;
        };
        pending.extend_from_slice(&piece);
        if !status.is_success() {
            // A refusal is one document, not a line each.
            continue;
        }
        while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = pending.drain(..=end).collect();
            take(name, &line, &mut trace, log)?;
        }
    }
    if !status.is_success() {
        let said: Value = serde_json::from_slice(&pending).unwrap_or_default();
        let why = said.get("message").and_then(Value::as_str).unwrap_or("the engine refuses").to_owned();
        return Err(log.failed(name, &why));
    }
    take(name, &pending, &mut trace, log)
}

fn take(name: &str, line: &[u8], trace: &mut Trace, log: &mut Log<'_>) -> Result<()> {
    let Ok(line) = serde_json::from_slice::<Line>(line) else { return Ok(()) };
    if line.id == TRACE
        && let Some(bytes) = line.aux.as_str().and_then(|text| STANDARD.decode(text).ok())
    {
        trace.take(&bytes, log);
    }
    match line.error {
        Some(why) => {
            trace.show_failed(log);
            Err(log.failed(name, &why))
        }
        None => Ok(()),
    }
}

fn no_buildkit(name: &str) -> Diagnostic {
    Diagnostic::new(
        "image::needs_buildkit",
        format!("{name} can only be built with BuildKit, and this engine has none"),
    )
    .help("use Docker Engine 20.10 or newer, or write the Dockerfile without `RUN --mount` and `<<`")
}
