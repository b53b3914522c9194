//! Who signed a request, by the rules of the services that send them.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;

use super::{Headers, Key, Request};
use crate::event::id::{Digest, Hasher};
use crate::workflow::webhook::Scheme;

/// Why a request is not taken. The sender is not told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The scheme's headers are missing, or are not what they should be.
    Unsigned,
    /// None of the secrets made the signature.
    Forged,
    /// It was signed more than [`WINDOW`] ago, or for a time to come.
    Stale,
}

/// What makes a request the same as another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Hash of the sender's id for it, or of all of it.
    pub digest: Digest,
    /// How long a repeat counts as one; for ever when nothing.
    pub window: Option<Duration>,
}

/// A signed time may be this far away.
pub const WINDOW: Duration = Duration::from_secs(5 * 60);

/// A sender has one signature for each of its keys; this many are looked at.
const MOST_SIGNATURES: usize = 8;

impl Refusal {
    /// For the one who watches.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unsigned => "it has no signature of the scheme",
            Self::Forged => "no secret of the webhook made its signature",
            Self::Stale => "it was signed more than 5 minutes ago, or this machine's clock is wrong",
        }
    }
}

/// Whether one of `keys` signed the request, at about `now`.
pub fn verify(scheme: &Scheme, keys: &[Key], request: &Request, now: Timestamp) -> Result<(), Refusal> {
    let signed = Signed::read(scheme, &request.headers).ok_or(Refusal::Unsigned)?;
    let pieces: Vec<&[u8]> = signed.before.iter().map(String::as_bytes).chain([&request.body[..]]).collect();
    // Every key is tried: which of them it was shows in no difference of time.
    let fits = keys.iter().filter(|key| key.signed(&pieces, &signed.signatures)).count();
    if fits == 0 {
        return Err(Refusal::Forged);
    }
    match signed.at {
        Some(at) if now.duration_since(at).unsigned_abs() > WINDOW => Err(Refusal::Stale),
        _ => Ok(()),
    }
}

/// What tells a request from others: the sender's id for it, else all of it for as long as senders try again.
pub fn identity(scheme: &Scheme, request: &Request) -> Identity {
    // An empty one would make all requests the same.
    let given = |id: &String| !id.is_empty();
    let header = |name: &str| request.headers.get(name).map(str::to_owned);
    let field = |name: &str| -> Option<String> {
        let document: serde_json::Value = serde_json::from_slice(&request.body).ok()?;
        document.get(name)?.as_str().map(str::to_owned)
    };
    let own = match scheme {
        Scheme::Standard => standard(&request.headers, "id").map(str::to_owned),
        Scheme::Github => header("x-github-delivery"),
        Scheme::Stripe => field("id"),
        Scheme::Slack => field("event_id"),
        Scheme::Hmac(_) => None,
    };
    if let Some(id) = own.filter(given).or_else(|| header("idempotency-key")).filter(given) {
        return Identity { digest: Digest::of(id), window: None };
    }
    let mut all = Hasher::default();
    for piece in [request.query.as_bytes(), b"\n", &request.body] {
        all.update(piece);
    }
    Identity { digest: all.finish(), window: Some(WINDOW) }
}

/// What Slack wants back when a person enters the address.
pub fn challenge(scheme: &Scheme, request: &Request) -> Option<String> {
    let document: serde_json::Value = (*scheme == Scheme::Slack)
        .then(|| serde_json::from_slice(&request.body).ok())
        .flatten()
        .filter(|document: &serde_json::Value| document["type"] == "url_verification")?;
    document["challenge"].as_str().map(str::to_owned)
}

/// What a request says of its signature.
struct Signed {
    /// What is signed before the body.
    before: Vec<String>,
    /// When, where the scheme says it.
    at: Option<Timestamp>,
    signatures: Vec<Vec<u8>>,
}

impl Signed {
    fn read(scheme: &Scheme, headers: &Headers) -> Option<Self> {
        match scheme {
            Scheme::Standard => {
                let id = standard(headers, "id")?;
                let time = standard(headers, "timestamp")?;
                let given = standard(headers, "signature")?.split(' ');
                let tags = given.filter_map(|one| STANDARD.decode(one.strip_prefix("v1,")?).ok());
                Self::new(vec![format!("{id}.{time}.")], Some(seconds(time)?), tags)
            }
            Scheme::Github => {
                let given = headers.get("x-hub-signature-256")?.strip_prefix("sha256=")?;
                Self::new(Vec::new(), None, hex::decode(given))
            }
            Scheme::Stripe => {
                let pairs: Vec<(&str, &str)> = headers
                    .get("stripe-signature")?
                    .split(',')
                    .filter_map(|pair| pair.trim().split_once('='))
                    .collect();
                let time = pairs.iter().find(|(name, _)| *name == "t").map(|(_, time)| *time)?;
                let tags = pairs
                    .iter()
                    .filter(|(name, _)| *name == "v1")
                    .filter_map(|(_, tag)| hex::decode(tag).ok());
                Self::new(vec![format!("{time}.")], Some(seconds(time)?), tags)
            }
            Scheme::Slack => {
                let time = headers.get("x-slack-request-timestamp")?;
                let given = headers.get("x-slack-signature")?.strip_prefix("v0=")?;
                Self::new(vec![format!("v0:{time}:")], Some(seconds(time)?), hex::decode(given))
            }
            Scheme::Hmac(name) => {
                let given = headers.get(name)?;
                let given = given.strip_prefix("sha256=").unwrap_or(given);
                let tag = hex::decode(given).ok().or_else(|| STANDARD.decode(given).ok());
                Self::new(Vec::new(), None, tag)
            }
        }
    }

    fn new(
        before: Vec<String>,
        at: Option<Timestamp>,
        signatures: impl IntoIterator<Item = Vec<u8>>,
    ) -> Option<Self> {
        let signatures: Vec<Vec<u8>> = signatures.into_iter().take(MOST_SIGNATURES).collect();
        (!signatures.is_empty()).then_some(Self { before, at, signatures })
    }
}

/// A header of Standard Webhooks, under its first name as well.
fn standard<'a>(headers: &'a Headers, name: &str) -> Option<&'a str> {
    headers.get(&format!("webhook-{name}")).or_else(|| headers.get(&format!("svix-{name}")))
}

fn seconds(text: &str) -> Option<Timestamp> {
    Timestamp::from_second(text.parse().ok()?).ok()
}

#[cfg(test)]
mod tests;
