//! `[notify]`: which addresses besides public ones messages about runs may go to.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Deserializer};

use crate::workflow::network::Pattern;

/// Where messages may go. A script alone cannot have the machine's own surroundings asked for something.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NotifySettings {
    /// Names and networks that may be private and may speak plain HTTP.
    pub allow: Vec<Surrounding>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Surrounding {
    /// Every address of a name.
    Name(Pattern),
    /// Every name with an address in this network.
    Net(IpNet),
}

impl Surrounding {
    /// Reads `intranet.example`, `*.intranet.example`, `10.0.0.0/8` or `192.168.1.7`.
    pub fn parse(text: &str) -> Option<Self> {
        let address = || text.parse::<IpAddr>().map(IpNet::from);
        match text.parse::<IpNet>().or_else(|_| address()) {
            Ok(net) => Some(Self::Net(net)),
            Err(_) => Pattern::parse(text).map(Self::Name),
        }
    }

    /// Whether `host` at `address` is meant; `host` is in lower case.
    pub fn holds(&self, host: &str, address: IpAddr) -> bool {
        match self {
            Self::Name(pattern) => pattern.matches(host),
            Self::Net(net) => net.contains(&address.to_canonical()),
        }
    }
}

impl<'de> Deserialize<'de> for Surrounding {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            let why = format!(
                "`{text}` is neither a name like `hooks.intranet.example` nor a network like `10.0.0.0/8`"
            );
            serde::de::Error::custom(why)
        })
    }
}
