//! Sending a request on from the host, under the gateway's own rules for addresses.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tidemill_helper::gateway::policy::Policy;
use tidemill_helper::gateway::{address, resolve};

/// How long a server may take to accept.
const CONNECT: Duration = Duration::from_secs(10);

/// Follows no redirects, uses no proxy, and connects to addresses that were looked at.
pub(super) fn client(policy: &Policy, authorities: &[Vec<u8>]) -> Result<reqwest::Client, String> {
    let mut builder = reqwest::Client::builder()
        .https_only(true)
        .http1_only()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .connect_timeout(CONNECT)
        .dns_resolver(Arc::new(Looking(Arc::new(policy.clone()))));
    for bundle in authorities {
        let certificates =
            reqwest::Certificate::from_pem_bundle(bundle).map_err(|error| error.to_string())?;
        builder = builder.tls_certs_merge(certificates);
    }
    builder.build().map_err(|error| error.to_string())
}

/// Resolves a name and leaves out the addresses that must not be reached.
struct Looking(Arc<Policy>);

impl Resolve for Looking {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = self.0.clone();
        Box::pin(async move {
            let looking = tokio::task::spawn_blocking(move || addresses(&policy, name.as_str())).await?;
            let found: Addrs = Box::new(looking?.into_iter());
            Ok(found)
        })
    }
}

fn addresses(policy: &Policy, name: &str) -> Result<Vec<SocketAddr>, String> {
    let resolvers = policy.resolver.map_or_else(resolve::configured, |resolver| vec![resolver]);
    let found = resolve::addresses(&resolvers, name)?;
    let mut objected = String::new();
    let mut allowed = Vec::new();
    for address in found.into_iter().map(IpAddr::V4) {
        match address::objection(policy, name, address) {
            Some(objection) => objected = objection,
            None => allowed.push(SocketAddr::new(address, 0)),
        }
    }
    if allowed.is_empty() { Err(objected) } else { Ok(allowed) }
}
