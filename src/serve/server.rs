//! The server of the daemon: one address, plain HTTP, as many connections as it can hold.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::Response;
use axum::routing::{get, post};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::{answer, body};
use crate::clock::Clock;
use crate::diagnostic::{Diagnostic, Result};
use crate::run::hooks::{Answer, Hooks};
use crate::run::intake::stop::Stop;
use crate::trigger::webhook::{self, Headers};

/// Listens, and does not answer yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
}

/// What every request is answered from.
#[derive(Clone)]
struct Desk {
    hooks: Arc<Hooks>,
    clock: Arc<dyn Clock>,
    /// Bodies that are read at once: together with `max_body` this bounds the memory they take.
    bodies: Arc<Semaphore>,
}

impl Server {
    /// Connections at once; more wait to be accepted.
    const CONNECTIONS: usize = 512;
    /// Bodies read at once; more senders are told to come back.
    const BODIES: usize = 64;
    /// A head is here by then.
    const HEAD: Duration = Duration::from_secs(10);
    /// Answers on their way have this long when the daemon stops.
    const GRACE: Duration = Duration::from_secs(5);
    /// Out of file descriptors, accepting is tried again after this time.
    const PAUSE: Duration = Duration::from_millis(200);

    /// Takes hold of the address.
    ///
    /// Errors: `serve::listen` when it is in use or is none of this machine's.
    pub async fn bind(address: SocketAddr) -> Result<Self> {
        let failed = |error: std::io::Error| {
            let help = match error.kind() {
                std::io::ErrorKind::AddrInUse => {
                    "another program listens there, perhaps another project's `tidemill watch`; set `listen` under \
                     [server] in tidemill.toml to another port"
                }
                std::io::ErrorKind::PermissionDenied => "ports below 1024 need root; choose a higher one",
                _ => "set `listen` under [server] in tidemill.toml to an address of this machine",
            };
            Diagnostic::new("serve::listen", format!("cannot listen on {address}")).cause(error).help(help)
        };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address })
    }

    /// Where it listens; the port is one that is free where 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until nothing new may begin; answers on their way still go out.
    pub async fn run(self, hooks: Arc<Hooks>, clock: Arc<dyn Clock>, stop: &Stop) {
        let bodies = Arc::new(Semaphore::new(Self::BODIES));
        let routes = Router::new()
            .route("/healthz", get(|| async { "ok\n" }))
            .route("/hooks/{*path}", post(receive))
            .with_state(Desk { hooks, clock: Arc::clone(&clock), bodies });
        let open = Arc::new(Semaphore::new(Self::CONNECTIONS));
        let graceful = GracefulShutdown::new();
        loop {
            let accepted = async {
                let place = Arc::clone(&open).acquire_owned().await;
                (place, self.listener.accept().await)
            };
            let accepted = tokio::select! {
                () = stop.finishing() => break,
                accepted = accepted => accepted,
            };
            match accepted {
                (place, Ok((stream, _))) => {
                    let connection = graceful.watcher().watch(connection(stream, routes.clone()));
                    tokio::spawn(async move {
                        // Whoever hangs up has nothing to be told.
                        let _ = connection.await;
                        drop(place);
                    });
                }
                (_, Err(_)) => tokio::time::sleep(Self::PAUSE).await,
            }
        }
        drop(self.listener);
        tokio::select! {
            () = graceful.shutdown() => {}
            () = clock.sleep(Self::GRACE) => {}
            () = stop.interrupting() => {}
        }
    }
}

/// A connection that speaks HTTP until it is over.
fn connection(
    stream: TcpStream,
    routes: Router,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = Box<dyn std::error::Error + Send + Sync>>
+ Send
+ 'static {
    // Only this: to find out which HTTP is spoken, a connection would be waited for without an end.
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder.http1().timer(TokioTimer::new()).header_read_timeout(Server::HEAD);
    builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes)).into_owned()
}

async fn receive(State(desk): State<Desk>, request: Request) -> Response {
    let (head, content) = request.into_parts();
    let path = head.uri.path().strip_prefix("/hooks/").unwrap_or_default().to_owned();
    let headers = Headers::new(head.headers.iter().filter_map(|(name, value)| {
        // The map has names in lower case.
        Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
    }));
    let Ok(reading) = desk.bodies.try_acquire() else {
        return answer::of(Answer::Busy(Duration::ZERO));
    };
    let said = headers.get(header::CONTENT_LENGTH.as_str()).and_then(|length| length.parse().ok());
    let limit = desk.hooks.max_body(&path);
    let body = match body::read(content, said, limit, desk.clock.as_ref()).await {
        Ok(body) => body,
        Err(status) => return refused(status),
    };
    drop(reading);
    let query = head.uri.query().unwrap_or_default().to_owned();
    answer::of(desk.hooks.receive(webhook::Request { path, query, headers, body }).await)
}

/// The rest of the body is not wanted: the connection ends.
fn refused(status: StatusCode) -> Response {
    let why = status.canonical_reason().unwrap_or_default().to_lowercase();
    let mut response = answer::error(status, &why);
    response.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
    response
}
