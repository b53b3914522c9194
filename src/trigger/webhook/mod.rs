//! Webhooks: whether a request is who it says, whether it came before, and what it brings.
//!
//! Nothing here waits or keeps anything: `run` hands the request in and does what comes out of it.

mod content;
pub mod key;
mod parts;
pub mod rate;
mod scheme;

use bytes::Bytes;

pub use content::{Brings, Brought, Malformed};
pub use key::Key;
pub use scheme::{Identity, Refusal, WINDOW, challenge, identity, verify};

/// A request as it came, its body whole.
#[derive(Debug, Clone)]
pub struct Request {
    /// What stands behind `/hooks/`.
    pub path: String,
    /// The query, not decoded.
    pub query: String,
    /// Headers, their names in lower case. Values that are no text are left out.
    pub headers: Headers,
    /// The body, byte for byte.
    pub body: Bytes,
}

/// Headers by name, in lower case.
#[derive(Debug, Clone, Default)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// Of these; names are in lower case.
    pub fn new(headers: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(headers.into_iter().collect())
    }

    /// The first of that name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}
