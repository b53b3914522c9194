//! A server that is told of runs: what it was sent, byte for byte, and what it answers.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use tokio::task::JoinHandle;

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Got {
    pub path: String,
    headers: Vec<(String, String)>,
    pub body: String,
}

/// What is answered next.
#[derive(Debug, Clone)]
pub enum Says {
    /// Status, headers and body.
    Status(u16, &'static [(&'static str, &'static str)], String),
    /// Nothing, and the connection stays open.
    Nothing,
}

/// What came, and what is said next.
type Talk = Arc<Mutex<(Vec<Got>, VecDeque<Says>)>>;

/// The server. It says 200 when it was told nothing else. Dropping it ends it.
pub struct Receiver {
    address: SocketAddr,
    state: Talk,
    server: JoinHandle<()>,
}

impl Receiver {
    /// Starts on a free port.
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let state = Talk::default();
        let routes = Router::new().fallback(answer).with_state(state.clone());
        let server = tokio::spawn(async move {
            let _ = axum::serve(listener, routes).await;
        });
        Self { address, state, server }
    }

    /// Where it listens, with this path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// It says this next, once.
    pub fn says(&self, says: Says) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1.push_back(says);
    }

    /// What came so far.
    pub fn got(&self) -> Vec<Got> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).0.clone()
    }
}

impl Got {
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    /// The body as JSON.
    pub fn event(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).expect("JSON")
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn answer(State(state): State<Talk>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let headers = head.headers.iter();
    let headers = headers
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
    let headers = headers.collect();
    let body = to_bytes(body, 1 << 20).await.unwrap_or_default();
    let body = String::from_utf8_lossy(&body).into_owned();
    let says = {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.0.push(Got { path: head.uri.to_string(), headers, body });
        state.1.pop_front()
    };
    match says {
        None => StatusCode::OK.into_response(),
        Some(Says::Nothing) => std::future::pending().await,
        Some(Says::Status(status, headers, body)) => {
            let mut response = body.into_response();
            *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::IM_A_TEAPOT);
            for (name, value) in headers {
                response.headers_mut().insert(*name, axum::http::HeaderValue::from_static(value));
            }
            response
        }
    }
}
