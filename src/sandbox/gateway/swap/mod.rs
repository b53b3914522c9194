//! Credentials that a sandbox uses and never has.
//!
//! The sandbox holds a placeholder. A connection to a host that a credential is bound to comes here, into Tidemill's
//! own process, over the gateway's stream ([`lines`]); here alone TLS ends, with a certificate of an authority that
//! lives as long as the run ([`authority`]). Each request is looked at ([`serve`]): where host, method and path are
//! those of the credential, its placeholder becomes the value ([`held`]), and the request goes to the host over a
//! connection of our own ([`send`]). What comes back does not have the value in it ([`scrub`]).

mod authority;
mod held;
pub(super) mod lines;
mod scrub;
mod send;
mod serve;

use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Result};
use crate::sandbox::gateway::Outside;
use crate::sandbox::gateway::ledger::Ledger;
use crate::workflow::network::Reach;
use authority::Authority;
use held::Held;
use tidemill_helper::gateway::policy::Policy;

/// What puts credentials in.
pub(in crate::sandbox) struct Swapper {
    authority: Authority,
    held: Vec<Held>,
    client: reqwest::Client,
}

impl Swapper {
    /// For the credentials of a run; nothing when it has none.
    pub(in crate::sandbox) fn new(
        reach: &Reach,
        outside: &Outside,
        policy: &Policy,
    ) -> Result<Option<Arc<Self>>> {
        if reach.credentials.is_empty() {
            return Ok(None);
        }
        let held: Result<Vec<Held>> =
            reach.credentials.iter().map(|credential| Held::new(credential, &outside.secrets)).collect();
        let failed = |why: String| {
            Diagnostic::new("sandbox::credentials", format!("credentials cannot be put in: {why}"))
                .help("`network.secrets` of the workflow and `[network]` in tidemill.toml say how it is done")
        };
        let authority = Authority::new().map_err(|error| failed(error.to_string()))?;
        let client = send::client(policy, &outside.authorities).map_err(failed)?;
        Ok(Some(Arc::new(Self { authority, held: held?, client })))
    }

    /// The sandbox's environment variables with their placeholders.
    pub(in crate::sandbox) fn placeholders(&self) -> impl Iterator<Item = (&str, &str)> {
        self.held.iter().map(|held| (held.credential.variable.as_str(), held.placeholder.as_str()))
    }

    /// The certificate that the sandbox is to trust.
    pub(in crate::sandbox) fn certificate(&self) -> String {
        self.authority.certificate()
    }
}

/// What serves one connection needs to know.
#[derive(Clone)]
struct Connection {
    swapper: Arc<Swapper>,
    ledger: Arc<Ledger>,
    host: Arc<str>,
    port: u16,
}
