//! The session over which the engine asks for secrets: we are the server on a connection that we opened.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{BufMut as _, Bytes, BytesMut};
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use hyper::body::Incoming;
use hyper::http::{HeaderMap, HeaderValue, request};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use prost::Message;
use tokio_util::task::AbortOnDropHandle;

/// The engine asks this every second, and hangs up when nobody answers.
const HEALTH: &str = "/grpc.health.v1.Health/Check";
const SECRET: &str = "/moby.buildkit.secrets.v1.Secrets/GetSecret";
/// Codes of gRPC.
const OK: &str = "0";
const NOT_FOUND: &str = "5";
const UNKNOWN_METHOD: &str = "12";
/// A question is a name; more is none.
const LARGEST_QUESTION: usize = 64 * 1024;

/// What the engine asks for.
#[derive(Clone, PartialEq, Message)]
struct Question {
    #[prost(string, tag = "1")]
    id: String,
}

/// What it is told.
#[derive(Clone, PartialEq, Message)]
struct Answer {
    #[prost(bytes = "vec", tag = "1")]
    data: Vec<u8>,
}

/// Whether we are still here: 1 is "serving".
#[derive(Clone, PartialEq, Message)]
struct Health {
    #[prost(int32, tag = "1")]
    status: i32,
}

/// A session.
pub(super) struct Session {
    id: String,
    secrets: Arc<BTreeMap<String, String>>,
}

impl Session {
    /// One that knows these secrets.
    pub(super) fn new(secrets: BTreeMap<String, String>) -> Self {
        let id = format!("tidemill-{:016x}{:016x}", fastrand::u64(..), fastrand::u64(..));
        Self { id, secrets: Arc::new(secrets) }
    }

    /// By what the build names it.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// The request that opens it.
    pub(super) fn head(&self, request: request::Builder) -> request::Builder {
        request
            .header("host", "engine")
            .header("connection", "Upgrade")
            .header("upgrade", "h2c")
            .header("x-docker-expose-session-uuid", &self.id)
            .header("x-docker-expose-session-name", "tidemill")
            .header("x-docker-expose-session-grpc-method", HEALTH)
            .header("x-docker-expose-session-grpc-method", SECRET)
    }

    /// Answers until the engine hangs up, or the caller does.
    pub(super) fn serve(&self, response: Response<Incoming>) -> AbortOnDropHandle<()> {
        let secrets = Arc::clone(&self.secrets);
        AbortOnDropHandle::new(tokio::spawn(async move {
            let Ok(upgraded) = hyper::upgrade::on(response).await else { return };
            let Ok(mut connection) = h2::server::handshake(TokioIo::new(upgraded)).await else { return };
            while let Some(Ok((request, respond))) = connection.accept().await {
                let secrets = Arc::clone(&secrets);
                // What cannot be answered shows as a failed build.
                tokio::spawn(async move { answer(request, respond, &secrets).await });
            }
        }))
    }
}

async fn answer(
    request: Request<RecvStream>,
    respond: SendResponse<Bytes>,
    secrets: &BTreeMap<String, String>,
) -> Result<(), h2::Error> {
    let path = request.uri().path().to_owned();
    let question = read(request.into_body()).await?;
    match path.as_str() {
        HEALTH => reply(respond, Ok(Health { status: 1 }.encode_to_vec())),
        SECRET => {
            let asked = Question::decode(question).unwrap_or_default();
            let found = secrets.get(&asked.id).map(|value| Answer { data: value.clone().into_bytes() });
            reply(respond, found.map(|answer| answer.encode_to_vec()).ok_or(NOT_FOUND))
        }
        _ => reply(respond, Err(UNKNOWN_METHOD)),
    }
}

/// The message in a request: a byte that says whether it is compressed, its length in four, and itself.
async fn read(mut body: RecvStream) -> Result<Bytes, h2::Error> {
    let mut whole = BytesMut::new();
    while let Some(piece) = body.data().await {
        let piece = piece?;
        body.flow_control().release_capacity(piece.len())?;
        whole.extend_from_slice(&piece);
        if whole.len() > LARGEST_QUESTION {
            return Err(Reason::ENHANCE_YOUR_CALM.into());
        }
    }
    Ok(if whole.len() < 5 { Bytes::new() } else { whole.split_off(5).freeze() })
}

fn reply(mut respond: SendResponse<Bytes>, message: Result<Vec<u8>, &'static str>) -> Result<(), h2::Error> {
    let mut head = Response::new(());
    head.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    let mut stream = respond.send_response(head, false)?;
    let code = match message {
        Ok(message) => {
            let mut framed = BytesMut::with_capacity(message.len() + 5);
            framed.put_u8(0);
            framed.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
            framed.extend_from_slice(&message);
            stream.send_data(framed.freeze(), false)?;
            OK
        }
        Err(code) => code,
    };
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static(code));
    stream.send_trailers(trailers)
}
