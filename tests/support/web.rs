//! A web server of our own on a plain socket: pages by path, and how often each was asked for.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};

/// What is sent for a path, byte for byte: head and body, then the connection is closed.
type Pages = BTreeMap<String, Vec<u8>>;

/// A page that never comes.
const NEVER: &[u8] = b"";

/// The server. Dropping it ends it.
pub struct Web {
    address: SocketAddr,
    state: Arc<Mutex<(Pages, Vec<String>)>>,
    told: Arc<Notify>,
    server: JoinHandle<()>,
}

impl Web {
    /// Starts on a free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(Mutex::new((Pages::new(), Vec::new())));
        let told = Arc::new(Notify::new());
        let (pages, tell) = (state.clone(), told.clone());
        let server = tokio::spawn(async move {
            // In the set, connections end with this task.
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                connections.spawn(answer(socket, pages.clone(), tell.clone()));
            }
        });
        Self { address, state, told, server }
    }

    /// A page with this content.
    pub fn page(&self, path: &str, body: &[u8]) -> String {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
        self.raw(path, &[head.as_bytes(), body].concat())
    }

    /// A page that leads elsewhere.
    pub fn redirect(&self, path: &str, to: &str) -> String {
        let head =
            format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        self.raw(path, head.as_bytes())
    }

    /// These bytes, whatever they are.
    pub fn raw(&self, path: &str, bytes: &[u8]) -> String {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.0.insert(path.to_owned(), bytes.to_vec());
        format!("http://{}{path}", self.address)
    }

    /// A page that never comes: the connection stays open and silent.
    pub fn never(&self, path: &str) -> String {
        self.raw(path, NEVER)
    }

    /// Waits until something is asked for.
    pub async fn is_asked(&self) {
        self.told.notified().await;
    }

    /// The paths that were asked for, in order.
    pub fn asked(&self) -> Vec<String> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn answer(mut socket: TcpStream, state: Arc<Mutex<(Pages, Vec<String>)>>, told: Arc<Notify>) {
    let mut head = Vec::new();
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        let mut chunk = [0; 4096];
        match socket.read(&mut chunk).await {
            Ok(count) if count > 0 => head.extend_from_slice(&chunk[..count]),
            _ => return,
        }
    }
    let text = String::from_utf8_lossy(&head).into_owned();
    let path = text.split(' ').nth(1).unwrap_or_default().to_owned();
    let bytes = {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.1.push(path.clone());
        let missing = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec();
        state.0.get(&path).cloned().unwrap_or(missing)
    };
    told.notify_one();
    if bytes == NEVER {
        std::future::pending::<()>().await;
    }
    // Who does not want the rest has gone.
    let _ = socket.write_all(&bytes).await;
    let _ = socket.shutdown().await;
}
