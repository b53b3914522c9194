//! A model server of our own, at the level of the wire: it plays OpenAI's two protocols from a script of replies,
//! with every deviation and fault real servers show, and checks every request it is sent.
//!
//! HTTP is written by hand on a plain socket, because what is tested is what no web framework lets one do: half a
//! character in a chunk, a connection closed against its promise, a body that ends too early.
//!
//! Self-contained (tokio and serde_json), so that the benchmark can include it.
#![expect(clippy::expect_used, reason = "a double of the tests: what cannot happen may panic")]

#[path = "wire/check.rs"]
mod check;
#[path = "wire/http.rs"]
mod http;
#[path = "wire/reply.rs"]
mod reply;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

pub use self::reply::{Ids, Indexes, Reply};

/// Which protocol a wire speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// OpenAI's Responses.
    Responses,
    /// Chat Completions.
    Chat,
}

impl Protocol {
    fn path(self) -> &'static str {
        match self {
            Self::Responses => "/v1/responses",
            Self::Chat => "/v1/chat/completions",
        }
    }
}

/// A request as it was seen.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Method and path, e.g. `POST /v1/responses`.
    pub target: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body; null when it is no JSON.
    pub body: Value,
    /// Which connection it came on, from 0.
    pub connection: usize,
}

impl Seen {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(known, _)| known == name)?;
        Some(value)
    }

    /// The conversation: `input` or `messages`.
    pub fn items(&self) -> &[Value] {
        let items = self.body["input"].as_array().or_else(|| self.body["messages"].as_array());
        items.map_or(&[], Vec::as_slice)
    }

    /// What tools said so far, in order.
    pub fn outputs(&self) -> Vec<&Value> {
        self.items()
            .iter()
            .filter_map(|item| match (item["type"].as_str(), item["role"].as_str()) {
                (Some("function_call_output"), _) => Some(&item["output"]),
                (_, Some("tool")) => Some(&item["content"]),
                _ => None,
            })
            .collect()
    }

    /// Names of the tools offered; empty when there are none.
    pub fn tools(&self) -> Vec<&str> {
        let tools = self.body["tools"].as_array().into_iter().flatten();
        tools.filter_map(|tool| tool["name"].as_str().or_else(|| tool["function"]["name"].as_str())).collect()
    }
}

type Script = dyn Fn(&Seen) -> Reply + Send + Sync;

#[derive(Default)]
struct State {
    replies: VecDeque<Reply>,
    otherwise: Option<Arc<Script>>,
    requests: Vec<Seen>,
    complaints: Vec<String>,
}

/// The server. Dropping it closes every connection.
pub struct Wire {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    server: JoinHandle<()>,
}

impl Wire {
    /// Starts on a free port.
    pub async fn start(protocol: Protocol) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(Mutex::new(State::default()));
        let server = tokio::spawn(serve(listener, protocol, state.clone()));
        Self { address, state, server }
    }

    /// Adds the reply to the next request that has none yet. A request after the last one gets a 500 that says so.
    pub fn reply(&self, reply: Reply) -> &Self {
        lock(&self.state).replies.push_back(reply);
        self
    }

    /// What is replied once the list is used up: a function of the request, so that many runs can be served at once.
    pub fn otherwise(&self, script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> &Self {
        lock(&self.state).otherwise = Some(Arc::new(script));
        self
    }

    /// Up to and with `/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Every request so far.
    pub fn requests(&self) -> Vec<Seen> {
        lock(&self.state).requests.clone()
    }

    /// What was wrong with requests; each also got a 400 with these words.
    pub fn complaints(&self) -> Vec<String> {
        lock(&self.state).complaints.clone()
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(listener: TcpListener, protocol: Protocol, state: Arc<Mutex<State>>) {
    // In the set, connections end with this task.
    let mut connections = JoinSet::new();
    let mut number = 0;
    while let Ok((socket, _)) = listener.accept().await {
        connections.spawn(talk(socket, number, protocol, state.clone()));
        while connections.try_join_next().is_some() {}
        number += 1;
    }
}

async fn talk(mut socket: TcpStream, connection: usize, protocol: Protocol, state: Arc<Mutex<State>>) {
    // Small writes of one answer must not wait for each other.
    let _ = socket.set_nodelay(true);
    let mut buffer = Vec::new();
    while let Some((seen, text)) = http::read(&mut socket, &mut buffer, connection).await {
        let reply = choose(&state, protocol, &seen, &text);
        let streamed = seen.body["stream"] == true;
        if http::write(&mut socket, &reply, protocol, streamed).await != http::After::Keep {
            return;
        }
    }
}

fn choose(state: &Mutex<State>, protocol: Protocol, seen: &Seen, text: &str) -> Reply {
    let complaints = check::complaints(protocol, seen, text);
    let mut state = lock(state);
    state.requests.push(seen.clone());
    if !complaints.is_empty() {
        let message = format!("the wire double: {}", complaints.join("; "));
        state.complaints.extend(complaints);
        return Reply::error(400, json!({ "error": { "message": message, "code": 400 } }));
    }
    if let Some(reply) = state.replies.pop_front() {
        return reply;
    }
    let otherwise = state.otherwise.clone();
    drop(state);
    if let Some(script) = otherwise {
        script(seen)
    } else {
        let message = "the wire double has no reply left";
        Reply::error(500, json!({ "error": { "message": message, "code": 500 } }))
    }
}
