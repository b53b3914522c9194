//! `[server]`: where requests from outside are listened for.

use std::net::{Ipv4Addr, SocketAddr};

use serde::Deserialize;

/// The daemon's server. It is there only while a workflow has a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// Address and port, plain HTTP: this machine alone without.
    pub listen: SocketAddr,
}

impl Server {
    /// Where it listens when nothing is said.
    const PORT: u16 = 7878;
}

impl Default for Server {
    fn default() -> Self {
        Self { listen: SocketAddr::from((Ipv4Addr::LOCALHOST, Self::PORT)) }
    }
}
