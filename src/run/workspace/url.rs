//! Files from the network, taken only when their hash is the declared one.

use std::error::Error;
use std::time::Duration;

use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, Response, Url};
use tempfile::NamedTempFile;
use tokio::io::AsyncWriteExt as _;

use crate::clock::Clock;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::{Digest, Hasher};
use crate::run::workspace::cache::{Cache, unwritable};
use crate::run::workspace::found::{Found, Part, Parts};
use crate::sandbox::{Body, Progress};
use crate::workflow::manifest::Download;
use crate::workflow::units::show_size;

/// A server that cannot be reached in this time is not there.
const CONNECT: Duration = Duration::from_secs(20);
/// A server that sends nothing for so long has died.
const STALL: Duration = Duration::from_secs(60);
/// Waits before it is tried again.
const WAITS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];
/// Mirrors redirect once or twice; more is a loop.
const REDIRECTS: usize = 5;

/// The file of a download: from the cache, or else from the network into the cache.
pub(super) async fn fetch(
    download: &Download,
    cache: &Cache,
    clock: &dyn Clock,
    progress: &dyn Progress,
) -> Result<Found> {
    let (kept, digest) = (cache.clone(), download.sha256.clone());
    let known = tokio::task::spawn_blocking(move || kept.file(&digest));
    let address = shown(&download.url);
    let file = if let Some(file) = known.await.ok().flatten() {
        file
    } else {
        progress.begin(&format!("fetching {address}"));
        let (file, size) = get(download, &address, cache, clock).await?;
        progress.end(&show_size(size));
        cache.keep(file, &download.sha256)?
    };
    let part = Part {
        name: String::new(),
        body: Body::File(file),
        digest: Some(download.sha256.clone()),
        // What a network says about permissions does not count.
        program: false,
    };
    Ok(Found { from: Some(address), content: Parts::One(part), ..Found::default() })
}

/// Why a file was not had, and whether it may be in a moment.
enum Fault {
    /// The network or the server had a bad moment.
    Passing(Diagnostic),
    /// Trying again changes nothing.
    Lasting(Diagnostic),
}

/// What goes wrong on this machine lasts.
impl From<Diagnostic> for Fault {
    fn from(diagnostic: Diagnostic) -> Self {
        Self::Lasting(diagnostic)
    }
}

async fn get(
    download: &Download,
    address: &str,
    cache: &Cache,
    clock: &dyn Clock,
) -> Result<(NamedTempFile, u64)> {
    let mut waits = WAITS.into_iter();
    loop {
        match (attempt(download, address, cache).await, waits.next()) {
            (Ok(got), _) => return Ok(got),
            (Err(Fault::Passing(_)), Some(wait)) => clock.sleep(wait).await,
            (Err(Fault::Passing(diagnostic) | Fault::Lasting(diagnostic)), _) => return Err(diagnostic),
        }
    }
}

async fn attempt(
    download: &Download,
    address: &str,
    cache: &Cache,
) -> std::result::Result<(NamedTempFile, u64), Fault> {
    let response = ask(&download.url, address).await?;
    if response.content_length().is_some_and(|size| size > download.max) {
        return Err(too_large(download, address).into());
    }
    let file = cache.new_file()?;
    let (digest, size) = receive(response, &file, download, address).await?;
    if digest == download.sha256 {
        return Ok((file, size));
    }
    let message = format!("{address} is not what the manifest says: its sha256 is {digest}");
    let help = format!(
        "the manifest says {}; look at what changed, and if it is right write the new hash. Nothing was kept",
        download.sha256
    );
    Err(Diagnostic::new("manifest::wrong_hash", message).help(help).into())
}

async fn ask(url: &str, address: &str) -> std::result::Result<Response, Fault> {
    let failed = |error: reqwest::Error| {
        let message = format!("cannot fetch {address}: {}", reason(&error));
        let diagnostic = Diagnostic::new("manifest::unreachable", message)
            .help("does `curl -I` reach it from this machine? Once it was fetched, it comes from the cache");
        if error.is_redirect() || error.is_builder() {
            Fault::Lasting(diagnostic)
        } else {
            Fault::Passing(diagnostic)
        }
    };
    let url = Url::parse(url).map_err(|error| {
        Diagnostic::new("manifest::unreachable", format!("{address} is no address")).cause(error)
    })?;
    let mut client = Client::builder()
        .connect_timeout(CONNECT)
        .read_timeout(STALL)
        .user_agent(concat!("tidemill/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::custom(redirect));
    // No proxy knows the way to this machine.
    if matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]")) {
        client = client.no_proxy();
    }
    let client = client.build().map_err(failed)?;
    let response = client.get(url).send().await.map_err(failed)?;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let message = format!("cannot fetch {address}: the server says {status}");
    let diagnostic = Diagnostic::new("manifest::unreachable", message)
        .help("check the address; a file that needs a login cannot be named in a manifest");
    let passes = status.is_server_error() || matches!(status.as_u16(), 408 | 429);
    Err(if passes { Fault::Passing(diagnostic) } else { Fault::Lasting(diagnostic) })
}

fn redirect(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let from = attempt.previous().last().map(Url::scheme);
    let why = match attempt.url().scheme() {
        _ if attempt.previous().len() > REDIRECTS => "more redirects than 5",
        "https" => return attempt.follow(),
        "http" if from == Some("http") => return attempt.follow(),
        "http" => "a redirect from https to http",
        _ => "a redirect to something else than a web server",
    };
    attempt.error(why)
}

async fn receive(
    mut response: Response,
    file: &NamedTempFile,
    download: &Download,
    address: &str,
) -> std::result::Result<(Digest, u64), Fault> {
    let failed = |error| unwritable(file.path(), error);
    let mut target = tokio::fs::File::from_std(file.reopen().map_err(failed)?);
    let (mut hasher, mut size) = (Hasher::default(), 0_u64);
    loop {
        let chunk = response.chunk().await.map_err(|error| {
            let message = format!("{address} broke off after {}: {}", show_size(size), reason(&error));
            let help = "run it again; nothing was kept";
            Fault::Passing(Diagnostic::new("manifest::unreachable", message).help(help))
        })?;
        let Some(chunk) = chunk else {
            break;
        };
        size += chunk.len() as u64;
        if size > download.max {
            return Err(too_large(download, address).into());
        }
        hasher.update(&chunk);
        target.write_all(&chunk).await.map_err(failed)?;
    }
    target.flush().await.map_err(failed)?;
    Ok((hasher.finish(), size))
}

fn too_large(download: &Download, address: &str) -> Diagnostic {
    let message = format!("{address} is larger than {}", show_size(download.max));
    Diagnostic::new("manifest::too_large", message)
        .help("say `max` in `mill.url` (and `limits.disk`, which holds the workspace); nothing was kept")
}

/// The innermost reason: the outer ones only say that a request failed.
fn reason(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "it took too long".to_owned();
    }
    let mut reason = error.source();
    while let Some(inner) = reason.and_then(Error::source) {
        reason = Some(inner);
    }
    reason.map_or_else(|| "no answer".to_owned(), ToString::to_string)
}

/// The address without its query, which may be a key: receipts and logs are read by others.
fn shown(url: &str) -> String {
    match url.split_once(['?', '#']) {
        Some((address, _)) => format!("{address}?..."),
        None => url.to_owned(),
    }
}
