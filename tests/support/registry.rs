//! A registry of images on this machine: one small image under any name and tag, behind a password.

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// The user it lets in.
pub const USER: &str = "miller";
/// The password is this variable's value: one that the process of a test has anyway.
pub const PASSWORD_VARIABLE: &str = "CARGO_PKG_NAME";
/// Its value.
pub const PASSWORD: &str = env!("CARGO_PKG_NAME");

const MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";

/// The registry; it stops when it is dropped.
#[derive(Debug)]
pub struct Registry {
    /// Its host with its port, as in the name of an image.
    pub host: String,
    served: Arc<Mutex<Served>>,
    task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Served {
    blobs: Vec<(String, Vec<u8>)>,
    manifest: Vec<u8>,
    /// Manifests that were asked for by somebody it lets in.
    asked: usize,
}

impl Registry {
    /// Serves an image with one file of this content.
    pub async fn serve(content: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let host = listener.local_addr().expect("an address").to_string();
        let served = Arc::new(Mutex::new(image(content)));
        let shared = Arc::clone(&served);
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(answer(socket, Arc::clone(&shared)));
            }
        });
        Self { host, served, task }
    }

    /// Moves every tag to an image with this content.
    pub fn push(&self, content: &str) {
        let asked = self.asked();
        *self.served.lock().expect("no panic") = Served { asked, ..image(content) };
    }

    /// How often a manifest was asked for with the right password.
    pub fn asked(&self) -> usize {
        self.served.lock().expect("no panic").asked
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

fn image(content: &str) -> Served {
    let mut layer = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    layer.append_data(&mut header, "content", content.as_bytes()).expect("a layer");
    let layer = layer.into_inner().expect("a layer");
    let config = json!({
        "architecture": "amd64", "os": "linux", "config": { "Cmd": ["/content"] },
        "rootfs": { "type": "layers", "diff_ids": [digest(&layer)] },
        "history": [{ "created": "2026-01-01T00:00:00Z" }], "created": "2026-01-01T00:00:00Z",
    });
    let config = serde_json::to_vec(&config).expect("JSON");
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST,
        "config": { "mediaType": "application/vnd.docker.container.image.v1+json", "size": config.len(), "digest": digest(&config) },
        "layers": [{ "mediaType": "application/vnd.docker.image.rootfs.diff.tar.gzip", "size": layer.len(), "digest": digest(&layer) }],
    });
    let blobs = vec![(digest(&config), config), (digest(&layer), layer)];
    Served { blobs, manifest: serde_json::to_vec(&manifest).expect("JSON"), asked: 0 }
}

/// One request for each connection; what is no HTTP (the engine tries TLS first) is hung up on.
async fn answer(mut socket: TcpStream, served: Arc<Mutex<Served>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match socket.read_u8().await {
            Ok(byte) if !head.is_empty() || byte.is_ascii_uppercase() => head.push(byte),
            _ => return,
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let allowed = format!("basic {}", STANDARD.encode(format!("{USER}:{PASSWORD}")).to_lowercase());
    let (status, kind, body) = if head.to_lowercase().contains(&allowed) {
        found(&path, &mut served.lock().expect("no panic"))
    } else {
        ("401 Unauthorized", "application/json", br#"{"errors":[{"code":"UNAUTHORIZED"}]}"#.to_vec())
    };
    let mut reply = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\
         docker-distribution-api-version: registry/2.0\r\ndocker-content-digest: {}\r\n\
         www-authenticate: Basic realm=\"mill\"\r\n\r\n",
        body.len(),
        digest(&body),
    )
    .into_bytes();
    if !head.starts_with("HEAD ") {
        reply.extend(body);
    }
    let _ = socket.write_all(&reply).await;
    let _ = socket.shutdown().await;
}

fn found(path: &str, served: &mut Served) -> (&'static str, &'static str, Vec<u8>) {
    if path == "/v2/" {
        return ("200 OK", "application/json", b"{}".to_vec());
    }
    if path.contains("/manifests/") {
        served.asked += 1;
        return ("200 OK", MANIFEST, served.manifest.clone());
    }
    match served.blobs.iter().find(|(digest, _)| path.ends_with(digest.as_str())) {
        Some((_, bytes)) => ("200 OK", "application/octet-stream", bytes.clone()),
        None => ("404 Not Found", "application/json", br#"{"errors":[{"code":"BLOB_UNKNOWN"}]}"#.to_vec()),
    }
}
