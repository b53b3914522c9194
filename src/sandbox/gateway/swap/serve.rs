//! One connection whose TLS ends here: each request is looked at, given its credentials, and sent on.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyDataStream, BodyExt as _, Full, StreamBody};
use hyper::body::{Body as _, Frame, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::DuplexStream;
use tokio_rustls::TlsAcceptor;

use super::Connection;
use super::held::{self, Target};
use super::scrub::Scrubber;
use crate::event::network::Contact;

/// How long a handshake may take.
const HELLO: Duration = Duration::from_secs(10);
/// Bytes of a request's head.
const LONGEST_HEAD: usize = 64 * 1024;
/// What concerns one connection and not the next.
const HOP: [HeaderName; 9] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHORIZATION,
    header::PROXY_AUTHENTICATE,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// Serves the connection until its end.
pub(super) async fn serve(connection: Connection, stream: DuplexStream) {
    let Ok(config) = connection.swapper.authority.serve(&connection.host) else { return };
    let accepting = TlsAcceptor::from(config).accept(stream);
    // A client that does not trust the run's authority says so here, and is told by its own TLS.
    let Ok(Ok(stream)) = tokio::time::timeout(HELLO, accepting).await else { return };
    let service = service_fn(|request| {
        let connection = connection.clone();
        async move { Ok::<_, Infallible>(connection.answer(request).await) }
    });
    let mut server = hyper::server::conn::http1::Builder::new();
    // How it ended matters to nobody: each request has had its answer.
    let _ = server.max_buf_size(LONGEST_HEAD).serve_connection(TokioIo::new(stream), service).await;
}

impl Connection {
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        if !self.is_for_us(&request) {
            return told(StatusCode::MISDIRECTED_REQUEST, "this connection is for another host");
        }
        if request.method() == Method::CONNECT {
            return told(StatusCode::METHOD_NOT_ALLOWED, "this is no proxy; connect to the host itself");
        }
        let (parts, body) = request.into_parts();
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        let target = Target {
            host: &self.host,
            port: self.port,
            method: parts.method.as_str(),
            path: parts.uri.path(),
        };
        let (headers, needles) = self.swap(&parts.headers, target);
        let url = format!("https://{}:{}{path}", self.host, self.port);
        let mut sending = self.swapper.client.request(parts.method.clone(), url).headers(headers);
        if !body.is_end_stream() {
            sending = sending.body(reqwest::Body::wrap_stream(BodyDataStream::new(body)));
        }
        match sending.send().await {
            Ok(response) if !needles.is_empty() && is_coded(&response) => {
                told(StatusCode::BAD_GATEWAY, "the answer is compressed, though that was not asked for")
            }
            Ok(response) => passed_on(response, Scrubber::new(needles)),
            Err(error) => told(StatusCode::BAD_GATEWAY, &words(&error)),
        }
    }

    /// The name of the connection is what its certificate vouches for: a request for another is not for us.
    fn is_for_us(&self, request: &Request<Incoming>) -> bool {
        let ours = |authority: &str| {
            let with_port = format!("{}:{}", self.host, self.port);
            authority.eq_ignore_ascii_case(&self.host) || authority.eq_ignore_ascii_case(&with_port)
        };
        let mut hosts = request.headers().get_all(header::HOST).iter();
        let named =
            hosts.next().and_then(|host| host.to_str().ok()).is_some_and(ours) && hosts.next().is_none();
        named && request.uri().authority().is_none_or(|authority| ours(authority.as_str()))
    }

    /// The headers to send, and what must not come back.
    fn swap(&self, given: &HeaderMap, target: Target<'_>) -> (HeaderMap, Vec<Vec<u8>>) {
        let (mut headers, mut needles) = (HeaderMap::new(), Vec::new());
        for (name, value) in given {
            // An answer that is compressed could not be looked through.
            let ours = [header::HOST, header::EXPECT, header::ACCEPT_ENCODING].contains(name);
            if ours || HOP.contains(name) {
                continue;
            }
            let swapped = held::swap(&self.swapper.held, target, value);
            for secret in swapped.misused {
                self.alarm(&secret);
            }
            needles.extend(swapped.needles);
            headers.append(name.clone(), swapped.value.unwrap_or_else(|| value.clone()));
        }
        (headers, needles)
    }

    fn alarm(&self, secret: &str) {
        let why =
            format!("the placeholder of {secret} was used where it is not bound to, and was not replaced");
        self.ledger.count(Contact {
            protocol: "swap".to_owned(),
            host: self.host.to_string(),
            port: self.port,
            refused: Some(why),
        });
    }
}

/// Whether the body is another than what it says.
fn is_coded(response: &reqwest::Response) -> bool {
    let codings = response.headers().get_all(header::CONTENT_ENCODING);
    codings.iter().any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

fn passed_on(response: reqwest::Response, scrubber: Scrubber) -> Response<Body> {
    let mut passed = Response::new(Body::default());
    *passed.status_mut() = response.status();
    for (name, value) in response.headers() {
        if HOP.contains(name) {
            continue;
        }
        if let Ok(value) = HeaderValue::from_bytes(&scrubber.whole(value.as_bytes())) {
            passed.headers_mut().append(name.clone(), value);
        }
    }
    *passed.body_mut() = StreamBody::new(scrubbed(response, scrubber)).boxed_unsync();
    passed
}

/// The answer's body as it comes, masked.
fn scrubbed(
    response: reqwest::Response,
    scrubber: Scrubber,
) -> impl Stream<Item = Result<Frame<Bytes>, std::io::Error>> + Send {
    let pieces = response.bytes_stream().boxed();
    futures_util::stream::unfold(Some((pieces, scrubber)), |state| async move {
        let (mut pieces, mut scrubber) = state?;
        match pieces.next().await {
            Some(Ok(piece)) => {
                let clean = Bytes::from(scrubber.feed(&piece));
                Some((Ok(Frame::data(clean)), Some((pieces, scrubber))))
            }
            Some(Err(error)) => Some((Err(std::io::Error::other(error)), None)),
            None => Some((Ok(Frame::data(Bytes::from(scrubber.finish()))), None)),
        }
    })
}

/// An answer of our own.
fn told(status: StatusCode, why: &str) -> Response<Body> {
    let body = Full::new(Bytes::from(format!("tidemill: {why}\n")));
    let mut answer = Response::new(body.map_err(|never| match never {}).boxed_unsync());
    *answer.status_mut() = status;
    answer
}

/// An error with its causes; addresses and names, never a header.
fn words(error: &reqwest::Error) -> String {
    let mut text = "the host cannot be reached".to_owned();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}
