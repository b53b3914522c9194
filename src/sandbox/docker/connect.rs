//! Finding the engine and agreeing on an API version.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use bollard::{API_DEFAULT_VERSION, Docker};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use crate::diagnostic::{Diagnostic, Result};

/// How long the engine may take to begin an answer; importing a base image of some 100 MB is the longest.
const ANSWER_SECONDS: u64 = 600;
/// How long a first sign of life may take.
const PING: Duration = Duration::from_secs(10);

/// An engine that answered.
pub(super) struct Connected {
    pub(super) host: String,
    pub(super) client: Docker,
    pub(super) version: String,
    /// Its machine's architecture, in Rust's words.
    pub(super) architecture: String,
}

/// Connects, and asks for version and architecture.
pub(super) async fn connect(host: String) -> Result<Connected> {
    let client = open(&host).map_err(|error| unreachable(&host, &error.to_string()).cause(error))?;
    let pinged = tokio::time::timeout(PING, client.negotiate_version()).await;
    let client = match pinged {
        Err(_) => return Err(unreachable(&host, "it does not answer")),
        Ok(Err(error)) => return Err(refused(&host, error)),
        Ok(Ok(client)) => client,
    };
    let version = match tokio::time::timeout(PING, client.version()).await {
        Err(_) => return Err(unreachable(&host, "it does not answer")),
        Ok(Err(error)) => return Err(refused(&host, error)),
        Ok(Ok(version)) => version,
    };
    let unknown = || "unknown".to_owned();
    let architecture = match version.arch.as_deref() {
        Some("amd64") => "x86_64".to_owned(),
        Some("arm64") => "aarch64".to_owned(),
        other => other.map_or_else(unknown, str::to_owned),
    };
    Ok(Connected { host, client, version: version.version.unwrap_or_else(unknown), architecture })
}

fn open(host: &str) -> Result<Docker, bollard::errors::Error> {
    match host.strip_prefix("unix://") {
        Some(path) => Docker::connect_with_unix(path, ANSWER_SECONDS, API_DEFAULT_VERSION),
        None => Docker::connect_with_http(host, ANSWER_SECONDS, API_DEFAULT_VERSION),
    }
}

/// A connection of its own to the engine at `host`.
pub(super) async fn dial(host: &str) -> io::Result<Box<dyn Duplex>> {
    if let Some(path) = host.strip_prefix("unix://") {
        return Ok(Box::new(UnixStream::connect(path).await?));
    }
    let rest = host.split_once("://").map_or(host, |(_, rest)| rest);
    Ok(Box::new(TcpStream::connect(rest.trim_end_matches('/')).await?))
}

/// Bytes both ways.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// `DOCKER_HOST`, then the current context, then the first socket of Docker, rootless Docker or Podman there is.
pub(super) fn host() -> String {
    if let Some(host) = std::env::var("DOCKER_HOST").ok().filter(|host| !host.is_empty()) {
        return host;
    }
    if let Some(host) = context() {
        return host;
    }
    let system = PathBuf::from("/var/run/docker.sock");
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).unwrap_or_default();
    let known = [system.clone(), runtime.join("docker.sock"), runtime.join("podman/podman.sock")];
    let found = known.into_iter().find(|socket| socket.is_absolute() && socket.exists()).unwrap_or(system);
    format!("unix://{}", found.display())
}

/// The endpoint of the context that `docker context use` chose.
fn context() -> Option<String> {
    let folder = match std::env::var_os("DOCKER_CONFIG") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(std::env::var_os("HOME")?).join(".docker"),
    };
    let json = |path: PathBuf| -> Option<serde_json::Value> {
        serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()
    };
    let chosen = std::env::var("DOCKER_CONTEXT").ok();
    let name = match chosen.filter(|name| !name.is_empty()) {
        Some(name) => name,
        None => json(folder.join("config.json"))?.get("currentContext")?.as_str()?.to_owned(),
    };
    let metas = std::fs::read_dir(folder.join("contexts/meta")).ok()?;
    let meta = metas
        .flatten()
        .filter_map(|entry| json(entry.path().join("meta.json")))
        .find(|meta| meta.get("Name").and_then(|value| value.as_str()) == Some(&name))?;
    Some(meta.pointer("/Endpoints/docker/Host")?.as_str()?.to_owned())
}

fn unreachable(host: &str, why: &str) -> Diagnostic {
    Diagnostic::new("sandbox::no_engine", format!("no Docker engine answers at {host}: {why}")).help(
        "start it (`systemctl start docker`, or `dockerd` by hand), or point DOCKER_HOST at one that runs",
    )
}

fn refused(host: &str, error: bollard::errors::Error) -> Diagnostic {
    let mut text = error.to_string();
    let mut next = std::error::Error::source(&error);
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    if text.to_lowercase().contains("permission denied") {
        return Diagnostic::new(
            "sandbox::no_permission",
            format!("this user may not use the Docker engine at {host}"),
        )
        .help("join the group `docker` (`sudo usermod -aG docker $USER`, then log in again), or run as root")
        .cause(error);
    }
    unreachable(host, &text).cause(error)
}
