//! What a sandbox tried to reach, and what came of it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A kind of contact: the same host and port by the same protocol, with the same outcome.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Contact {
    /// `dns`, `tls`, `http`, `swap` (TLS that ends on the host, which puts a credential in) or `tcp`.
    pub protocol: String,
    /// The name asked for; empty when there was none. `(others)` stands for names beyond the first 256.
    pub host: String,
    /// The port; 0 for a name alone.
    pub port: u16,
    /// Why it was refused; nothing when it was allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// How often there was such contact, and how much was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Use {
    /// Which.
    pub contact: Contact,
    /// Times.
    pub times: u64,
    /// Bytes from the sandbox.
    pub sent: u64,
    /// Bytes to the sandbox.
    pub received: u64,
}

impl fmt::Display for Contact {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = if self.host.is_empty() { "an unnamed host" } else { &self.host };
        match self.port {
            0 => write!(formatter, "{host} ({})", self.protocol),
            port => write!(formatter, "{host}:{port} ({})", self.protocol),
        }
    }
}
