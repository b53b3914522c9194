//! A sandbox's way out, as far as it does not matter what runs it: what the gateway is told, and what it tells.

pub(super) mod host;
mod ledger;
pub(super) mod link;
pub(super) mod swap;

use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};

use tidemill_helper::gateway::policy::Policy;

use crate::diagnostic::Result;
use crate::workflow::network::{Pattern, Reach, Rule};

/// What the project adds to a workflow's network. A script alone cannot open the machine's own surroundings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outside {
    /// Names that may have private addresses.
    pub private: Vec<Pattern>,
    /// Who resolves names; the engine's own when absent.
    pub resolver: Option<SocketAddr>,
    /// Certificates, as PEM, by which servers that get credentials are trusted besides the machine's own.
    pub authorities: Vec<Vec<u8>>,
    /// The values of credentials, by the name of the variable they come from.
    pub secrets: BTreeMap<String, Secret>,
}

/// A value that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps a value.
    pub fn new(value: String) -> Self {
        Self(value)
    }

    /// The value, for putting it where it belongs.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret")
    }
}

/// The policy of a gateway that stands at `address`.
pub(super) fn policy(reach: &Reach, outside: &Outside, address: Ipv4Addr) -> Result<Policy> {
    let swap = reach.credentials.iter().filter_map(|credential| {
        Some(Rule { host: Pattern::parse(&credential.host)?, port: credential.port })
    });
    Ok(Policy {
        mode: reach.mode,
        allow: reach.allow.clone(),
        private: outside.private.clone(),
        swap: swap.collect(),
        own: host::addresses()?,
        resolver: outside.resolver,
        ..Policy::closed(address)
    })
}
