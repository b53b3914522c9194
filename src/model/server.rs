//! A server that speaks one of OpenAI's protocols: where it is, how it is asked, how its answer comes in.
//!
//! async-openai says what is asked (its request types) and of whom (its configuration: address, headers). Its own
//! reading of answers stops at the first deviation, drops `Retry-After` and retries unasked, so the bytes are read here.

use std::error::Error;
use std::sync::OnceLock;
use std::time::Duration;

use async_openai::config::{Config, OpenAIConfig};
use jiff::Timestamp;
use reqwest::header::AUTHORIZATION;
use reqwest::{Client, Response, Url};
use serde::Serialize;

use super::feed::Feed;
use super::key::Key;
use super::{ModelError, Retry, failure, retry_after};
use crate::diagnostic::{Diagnostic, Result};

/// Where OpenAI itself is.
pub const OPENAI: &str = "https://api.openai.com/v1";
/// A server that sends nothing for so long has died. Reading a long prompt on a slow machine takes minutes.
pub const STALL: Duration = Duration::from_secs(300);
/// A server that cannot be reached in this time is not there.
const CONNECT: Duration = Duration::from_secs(20);
/// Of the body of an error, this much is read.
const MAX_ERROR: usize = 64 * 1024;

/// What is needed to ask a model on a server.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Its name in `tidemill.toml`, or the provider's.
    pub name: String,
    /// The server's name for it.
    pub model: String,
    /// The server, up to and with `/v1`.
    pub base_url: String,
    /// The key; none for servers that need none.
    pub key: Key,
    /// The environment variable the key is from, to be named in advice.
    pub key_env: Option<String>,
    /// `OpenAI-Organization`, when one is set.
    pub organization: Option<String>,
    /// `OpenAI-Project`, when one is set.
    pub project: Option<String>,
    /// Tokens it may write per answer, when the request does not say.
    pub max_output_tokens: Option<u64>,
    /// Without a byte for so long, the answer counts as cut.
    pub stall: Duration,
}

impl Settings {
    /// A model on the server at `base_url`, with no key.
    pub fn new(name: impl Into<String>, base_url: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            model: name.clone(),
            name,
            base_url: base_url.into(),
            key: Key::default(),
            key_env: None,
            organization: None,
            project: None,
            max_output_tokens: None,
            stall: STALL,
        }
    }
}

/// A server and the model we ask there.
#[derive(Debug)]
pub(super) struct Server {
    settings: Settings,
    config: OpenAIConfig,
    client: Client,
    /// Keeps no connections: for the one retry after a stale one.
    fresh: OnceLock<Client>,
    url: Url,
}

impl Server {
    pub fn new(settings: Settings) -> Result<Self> {
        let base = settings.base_url.trim().trim_end_matches('/').to_owned();
        let url = Url::parse(&base)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| {
                let message = format!("model `{}` has a base_url that is none: `{base}`", settings.name);
                Diagnostic::new("model::wrong_url", message).help(
                    "write `base_url` as the server's address up to /v1, like `http://localhost:11434/v1`",
                )
            })?;
        let headers = [settings.organization.as_deref(), settings.project.as_deref()];
        if !settings.key.fits_a_header() || headers.into_iter().flatten().any(|text| !is_visible(text)) {
            let from = settings.key_env.as_deref().unwrap_or("the environment");
            let message = format!("the key of model `{}` has characters no key has", settings.name);
            return Err(Diagnostic::new("model::bad_key", message).help(format!(
                "set {from} to the key alone, on one line, without quotes"
            )));
        }
        // Every part is set, so that nothing comes from the process's environment behind our back.
        let config = OpenAIConfig::new()
            .with_api_base(base)
            .with_api_key(settings.key.expose())
            .with_org_id(settings.organization.clone().unwrap_or_default())
            .with_project_id(settings.project.clone().unwrap_or_default());
        Ok(Self {
            client: client(&url, Pool::Keep)?,
            fresh: OnceLock::new(),
            settings,
            config,
            url,
        })
    }

    pub fn name(&self) -> &str {
        &self.settings.name
    }

    pub fn model(&self) -> &str {
        &self.settings.model
    }

    /// Tokens an answer may have, as the protocols count them.
    pub fn limit(&self, asked: Option<u64>) -> Option<u32> {
        let limit = match (asked, self.settings.max_output_tokens) {
            (Some(asked), Some(set)) => Some(asked.min(set)),
            (asked, set) => asked.or(set),
        };
        limit.map(|limit| u32::try_from(limit).unwrap_or(u32::MAX))
    }

    /// Whether it is OpenAI's own, whose newer settings others do not know.
    pub fn is_openai(&self) -> bool {
        self.url
            .host_str()
            .is_some_and(|host| host == "openai.com" || host.ends_with(".openai.com"))
    }

    pub fn redact(&self, text: &str) -> String {
        self.settings.key.redact(text)
    }

    /// Asks, and gives the answer as it comes in. A status that is no success is an error already.
    pub async fn ask(&self, path: &str, body: &impl Serialize) -> Result<Feed<'_>, ModelError> {
        let body = serde_json::to_vec(body).map_err(|error| {
            let message = format!("the request to model `{}` cannot be written as JSON", self.name());
            never(Diagnostic::new("model::bad_request", message).cause(error))
        })?;
        let response = match self.send(&self.client, path, body.clone()).await? {
            Ok(response) => response,
            // The server may have closed a connection it promised to keep: once more, on a fresh one.
            Err(error) if error.is_request() && !error.is_connect() && !error.is_timeout() => {
                let fresh = self.fresh().map_err(never)?;
                let sent = self.send(fresh, path, body).await?;
                sent.map_err(|error| self.unreachable(error))?
            }
            Err(error) => return Err(self.unreachable(error)),
        };
        if response.status().is_success() {
            Ok(Feed::new(self, response, self.settings.stall))
        } else {
            Err(self.refused(response).await)
        }
    }

    async fn send(
        &self,
        client: &Client,
        path: &str,
        body: Vec<u8>,
    ) -> Result<reqwest::Result<Response>, ModelError> {
        let mut headers = self.config.headers();
        if self.settings.key.is_none() {
            headers.remove(AUTHORIZATION);
        }
        let request = client
            .post(self.config.url(path))
            .headers(headers)
            .header("content-type", "application/json")
            .header("accept", "text/event-stream, application/json")
            .body(body)
            .send();
        tokio::time::timeout(self.settings.stall, request)
            .await
            .map_err(|_| self.stalled())
    }

    fn fresh(&self) -> Result<&Client> {
        if let Some(client) = self.fresh.get() {
            return Ok(client);
        }
        let client = client(&self.url, Pool::None)?;
        Ok(self.fresh.get_or_init(|| client))
    }

    async fn refused(&self, mut response: Response) -> ModelError {
        let status = response.status().as_u16();
        let asked = retry_after::asked(response.headers(), Timestamp::now());
        let mut body = Vec::new();
        // What can be read of the words is quoted; the status alone says enough.
        while let Ok(Ok(Some(chunk))) = tokio::time::timeout(self.settings.stall, response.chunk()).await {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_ERROR {
                break;
            }
        }
        failure::of_answer(self, status, asked, &String::from_utf8_lossy(&body))
    }

    fn unreachable(&self, error: reqwest::Error) -> ModelError {
        let error = error.without_url();
        let connecting = error.is_connect() || error.is_timeout();
        let message = if connecting {
            format!("model `{}` cannot be reached at {}", self.name(), self.place())
        } else {
            format!("model `{}` closed the connection without an answer", self.name())
        };
        let mut reason = error.to_string();
        let mut next = error.source();
        while let Some(cause) = next {
            reason = cause.to_string();
            next = cause.source();
        }
        let message = format!("{message}: {}", failure::quote(self, &reason));
        later(Diagnostic::new("model::unreachable", message).help(self.url_help()))
    }

    /// Nothing came for too long.
    pub fn stalled(&self) -> ModelError {
        let seconds = self.settings.stall.as_secs_f64();
        let message = format!("model `{}` sent nothing for {seconds} s", self.name());
        later(Diagnostic::new("model::stalled", message).help(
            "it is tried again; a server that reads long prompts slowly needs a smaller prompt or a faster machine",
        ))
    }

    /// The answer ended before it was over.
    pub fn cut(&self, reason: &str) -> ModelError {
        let mut message = format!("the answer of model `{}` was cut before its end", self.name());
        let reason = failure::quote(self, reason);
        if !reason.is_empty() {
            message.push_str(": ");
            message.push_str(&reason);
        }
        later(Diagnostic::new("model::cut_stream", message).help(
            "it is tried again; if it happens often, look at the server's log and at proxies on the way",
        ))
    }

    /// The answer is not what the protocol says.
    pub fn bad_answer(&self, said: &str) -> ModelError {
        let message = format!(
            "model `{}` answered with something that is no answer: `{}`",
            self.name(),
            failure::quote(self, said)
        );
        never(Diagnostic::new("model::bad_answer", message).help(self.url_help()))
    }

    /// The server as people know it: without a password in the address.
    fn place(&self) -> String {
        let mut url = self.url.clone();
        if url.set_password(None).is_err() || url.set_username("").is_err() {
            return url.host_str().unwrap_or_default().to_owned();
        }
        url.set_query(None);
        self.redact(url.as_str())
    }

    pub fn url_help(&self) -> String {
        let place = self.place();
        if self.is_openai() {
            format!("is {place} reachable from here, through the proxy if there is one (HTTPS_PROXY)?")
        } else {
            format!(
                "is a server running there, and is `base_url = \"{place}\"` right in {}? \
                 it ends in /v1 for most servers",
                self.table()
            )
        }
    }

    pub fn key_help(&self) -> String {
        match &self.settings.key_env {
            Some(name) => format!("set {name} to a key that is valid at {}", self.place()),
            None => format!(
                "name the environment variable with the key in {}: `api_key_env = \"NAME\"`",
                self.table()
            ),
        }
    }

    pub fn model_help(&self) -> String {
        format!(
            "`model = \"{}\"` in {} is the server's own name for it; `curl {}/models` lists what it has",
            self.model(),
            self.table(),
            self.place()
        )
    }

    fn table(&self) -> String {
        format!("[models.\"{}\"] of tidemill.toml", self.name())
    }
}

/// Whether a client keeps connections for later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pool {
    Keep,
    None,
}

fn client(url: &Url, pool: Pool) -> Result<Client> {
    // A redirected POST would arrive as a GET, and the key at another server.
    let mut builder = Client::builder()
        .connect_timeout(CONNECT)
        .redirect(reqwest::redirect::Policy::none());
    if pool == Pool::None {
        builder = builder.pool_max_idle_per_host(0);
    }
    // No proxy knows the way to this machine.
    if matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]")) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| {
        Diagnostic::new("model::no_client", "cannot make an HTTP client")
            .cause(error.without_url())
            .help("are this machine's certificates readable (package ca-certificates)?")
    })
}

fn is_visible(text: &str) -> bool {
    text.bytes().all(|byte| (0x21..0x7f).contains(&byte))
}

pub(super) fn never(diagnostic: Diagnostic) -> ModelError {
    ModelError {
        diagnostic,
        retry: Retry::Never,
    }
}

fn later(diagnostic: Diagnostic) -> ModelError {
    ModelError {
        diagnostic,
        retry: Retry::After { asked: None },
    }
}
