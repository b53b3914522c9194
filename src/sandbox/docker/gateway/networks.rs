//! The two networks of a gateway, out of a pool of our own: the engine's own pools hold some thirty networks.

use std::net::Ipv4Addr;

use bollard::models::{Ipam, IpamConfig, NetworkCreateRequest};

use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::RunId;
use crate::sandbox::docker::Docker;
use crate::sandbox::docker::errors::{explain, words};

/// The pool, `10.213.0.0/16`: of 16 bits, three are a network's own.
const POOL: [u8; 2] = [10, 213];
const NETWORK_BITS: u32 = 3;
/// Places tried before giving up; with a thousand networks in use one in eight is taken.
const TRIES: usize = 40;
/// The engine's word for a bridge on which the host itself has no address.
pub(super) const NO_HOST_ADDRESS: &str = "com.docker.network.bridge.inhibit_ipv4";

/// Where a network leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leads {
    /// To the gateway alone.
    Nowhere,
    /// Out, for the gateway.
    Out,
}

impl Docker {
    /// Makes a network and gives its first address that is free for us.
    pub(super) async fn make_network(&self, name: &str, run: &RunId, leads: Leads) -> Result<Ipv4Addr> {
        for _ in 0..TRIES {
            let place = fastrand::u16(..) & !((1 << NETWORK_BITS) - 1);
            let [high, low] = place.to_be_bytes();
            let base = Ipv4Addr::new(POOL[0], POOL[1], high, low);
            match self.client.create_network(request(self, name, run, leads, base)).await {
                // The first is the network's own, the second the engine's for the host.
                Ok(_) => return Ok(Ipv4Addr::from_bits(base.to_bits() + 2)),
                Err(error) if is_taken(&words(&error)) => {}
                Err(error) => return Err(explain("make the sandbox's network", error)),
            }
        }
        Err(Diagnostic::new("sandbox::no_subnet", "no free subnet was found for the sandbox's network").help(
            "it looks for one in 10.213.0.0/16: is that whole range in use on this machine? \
             `docker network ls --filter label=tidemill.run` shows Tidemill's own",
        ))
    }
}

fn request(docker: &Docker, name: &str, run: &RunId, leads: Leads, base: Ipv4Addr) -> NetworkCreateRequest {
    let config = IpamConfig {
        subnet: Some(format!("{base}/{}", 32 - NETWORK_BITS)),
        gateway: Some(Ipv4Addr::from_bits(base.to_bits() + 1).to_string()),
        ..IpamConfig::default()
    };
    let inside = leads == Leads::Nowhere;
    let options = inside.then(|| [(NO_HOST_ADDRESS.to_owned(), "true".to_owned())].into());
    NetworkCreateRequest {
        name: name.to_owned(),
        driver: Some("bridge".to_owned()),
        internal: Some(inside),
        attachable: Some(false),
        enable_ipv6: Some(false),
        ipam: Some(Ipam { config: Some(vec![config]), ..Ipam::default() }),
        options,
        labels: Some(docker.labels(run.as_str())),
        ..NetworkCreateRequest::default()
    }
}

/// Somebody else's network, or a route of the machine, lies there.
fn is_taken(said: &str) -> bool {
    let said = said.to_lowercase();
    said.contains("overlap") || said.contains("conflict") || said.contains("already allocated")
}
