//! The gateway as a second container: on a network with the sandbox, and on one with a way out.
//!
//! The sandbox's network is `internal` and the host has no address on it, so there is nothing on it but the two. The
//! gateway holds no secret, runs as nobody with nothing but our program in its image, and ends with its standard input,
//! which is with the process that started it.

mod image;
mod join;
mod networks;
pub(super) mod trust;
mod verify;

use std::net::Ipv4Addr;
use std::sync::Arc;

use bollard::container::LogOutput;
use bollard::models::{
    ContainerCreateBody, EndpointIpamConfig, EndpointSettings, HostConfig, HostConfigLogConfig,
    NetworkConnectRequest, NetworkingConfig,
};
use bollard::query_parameters::{AttachContainerOptionsBuilder, CreateContainerOptionsBuilder};
use futures_util::StreamExt as _;
use tidemill_helper::gateway::policy::Policy;
use tokio::sync::{Mutex, mpsc};

use crate::diagnostic::{Diagnostic, Result};
use crate::event::What;
use crate::event::id::RunId;
use crate::sandbox::docker::Docker;
use crate::sandbox::docker::errors::{explain, is_missing, words};
use crate::sandbox::docker::sweep::{PATIENCE, PAUSE};
use crate::sandbox::gateway::link::Link;
use crate::sandbox::gateway::swap::Swapper;
use crate::sandbox::gateway::{Outside, policy};
use crate::workflow::network::{Pattern, Reach};
use networks::Leads;

/// Nobody: not root, and not the agent.
const USER: &str = "65534:65534";
/// What a few hundred connections take.
const MEMORY: i64 = 128 << 20;
/// Two for each connection, and the listeners.
const THREADS: i64 = 1024;
/// A processor's worth, in billionths.
const NANO_CPUS: i64 = 1_000_000_000;

/// The names of a gateway's parts on the engine.
#[derive(Debug, Clone)]
pub(super) struct Parts {
    /// The gateway's container.
    pub(super) container: String,
    /// The network it shares with the sandbox.
    pub(super) inside: String,
    /// The network with a way out.
    pub(super) outside: String,
    /// The volume with the certificates the sandbox trusts, when it has credentials.
    pub(super) trust: Option<String>,
}

/// A gateway that listens.
pub(super) struct Gateway {
    /// What it is made of.
    pub(super) parts: Parts,
    /// Its address on the sandbox's network.
    pub(super) address: Ipv4Addr,
    /// The names that are written out on the list.
    names: Vec<String>,
    /// What puts credentials in, when there are any.
    swapper: Option<Arc<Swapper>>,
    link: Mutex<Option<Link>>,
    events: std::sync::Mutex<Option<mpsc::UnboundedReceiver<What>>>,
}

impl Parts {
    /// Of the sandbox `name`.
    pub(super) fn named(name: &str, reach: &Reach) -> Self {
        Self {
            container: format!("{name}-gateway"),
            inside: format!("{name}-inside"),
            outside: format!("{name}-outside"),
            trust: Some(format!("{name}-trust")).filter(|_| !reach.credentials.is_empty()),
        }
    }
}

impl Docker {
    /// Makes the networks and starts the gateway. What was made when something fails is the caller's to remove.
    pub(super) async fn start_gateway(
        &self,
        parts: &Parts,
        run: &RunId,
        reach: &Reach,
        outside: &Outside,
    ) -> Result<Gateway> {
        let image = self.gateway_image().await?;
        if let Some(volume) = &parts.trust {
            self.make_trust(volume, run).await?;
        }
        // Both are waited for: one that is made behind a failure would be left.
        let (inside, outside_made) = tokio::join!(
            self.make_network(&parts.inside, run, Leads::Nowhere),
            self.make_network(&parts.outside, run, Leads::Out),
        );
        let address = inside.and_then(|address| outside_made.map(|_| address))?;
        let options = CreateContainerOptionsBuilder::default().name(&parts.container).build();
        self.client
            .create_container(Some(options), body(self, parts, run, &image, address))
            .await
            .map_err(|error| explain("create the gateway", error))?;
        let connect = NetworkConnectRequest { container: parts.container.clone(), endpoint_config: None };
        self.client
            .connect_network(&parts.outside, connect)
            .await
            .map_err(|error| explain("connect the gateway", error))?;
        let attach = AttachContainerOptionsBuilder::default().stream(true).stdin(true).stdout(true).build();
        let streams = self
            .client
            .attach_container(&parts.container, Some(attach))
            .await
            .map_err(|error| explain("attach to the gateway", error))?;
        self.client
            .start_container(&parts.container, None)
            .await
            .map_err(|error| explain("start the gateway", error))?;
        let output = streams.output.filter_map(|piece| async move {
            match piece {
                Ok(LogOutput::StdOut { message }) => Some(Ok(message.to_vec())),
                Ok(_) => None,
                Err(error) => Some(Err(error.to_string())),
            }
        });
        let (events, told) = mpsc::unbounded_channel();
        let policy = policy(reach, outside, address)?;
        let swapper = Swapper::new(reach, outside, &policy)?;
        let opening = Link::open(&policy, Box::pin(output), streams.input, events, swapper.clone());
        let link = opening.await.map_err(|why| {
            Diagnostic::new("sandbox::no_gateway", format!("the gateway does not work: {why}"))
                .help("the sandbox would have no network, so nothing was run; run it again")
        })?;
        self.verify_gateway(parts).await?;
        Ok(Gateway {
            parts: parts.clone(),
            address,
            names: names(&policy),
            swapper,
            link: Mutex::new(Some(link)),
            events: std::sync::Mutex::new(Some(told)),
        })
    }

    /// Removes a gateway with its networks, whoever else may be removing them at the same time.
    pub(super) async fn remove_parts(&self, parts: &Parts) -> Result<()> {
        self.remove_container(&parts.container).await?;
        let (inside, outside) =
            tokio::join!(self.remove_network(&parts.inside), self.remove_network(&parts.outside));
        inside.and(outside)?;
        match &parts.trust {
            Some(volume) => self.remove_both(&parts.container, volume).await,
            None => Ok(()),
        }
    }

    /// Removes a network. Whether it was there.
    pub(super) async fn remove_network(&self, name: &str) -> Result<bool> {
        for _ in 0..PATIENCE {
            match self.client.remove_network(name).await {
                Ok(()) => return Ok(true),
                Err(error) if is_missing(&error) => return Ok(false),
                Err(error) if words(&error).contains("active endpoints") => {}
                Err(error) => return Err(explain("remove the sandbox's network", error)),
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(Diagnostic::new("sandbox::busy", format!("the network {name} is still in use"))
            .help("the next start of tidemill removes it; `docker network rm` does so by hand"))
    }
}

impl Gateway {
    /// What it decides, as it does. Given once.
    pub(super) fn events(&self) -> Option<mpsc::UnboundedReceiver<What>> {
        self.events.lock().ok()?.take()
    }

    /// Has it say its last numbers, and ends it.
    pub(super) async fn close(&self) {
        if let Some(link) = self.link.lock().await.take() {
            link.close().await;
        }
    }
}

/// The names that are allowed in full, each once.
fn names(policy: &Policy) -> Vec<String> {
    let rules = policy.allow.iter().chain(&policy.swap);
    let mut names: Vec<String> = rules
        .filter_map(|rule| match &rule.host {
            Pattern::Name(name) => Some(name.clone()),
            Pattern::Below(_) => None,
        })
        .collect();
    names.sort();
    names.dedup();
    names
}

fn body(docker: &Docker, parts: &Parts, run: &RunId, image: &str, address: Ipv4Addr) -> ContainerCreateBody {
    let endpoint = EndpointSettings {
        ipam_config: Some(EndpointIpamConfig {
            ipv4_address: Some(address.to_string()),
            ..EndpointIpamConfig::default()
        }),
        ..EndpointSettings::default()
    };
    let sysctls = [
        // It listens on the ports that names are asked for at, and is nobody.
        ("net.ipv4.ip_unprivileged_port_start", "0"),
        // It passes bytes on, never packets.
        ("net.ipv4.ip_forward", "0"),
    ];
    ContainerCreateBody {
        image: Some(image.to_owned()),
        user: Some(USER.to_owned()),
        entrypoint: Some(vec![image::PATH.to_owned(), "gateway".to_owned()]),
        cmd: Some(Vec::new()),
        labels: Some(docker.labels(run.as_str())),
        hostname: Some("gateway".to_owned()),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        open_stdin: Some(true),
        stdin_once: Some(true),
        tty: Some(false),
        host_config: Some(HostConfig {
            network_mode: Some(parts.inside.clone()),
            readonly_rootfs: Some(true),
            cap_drop: Some(vec!["ALL".to_owned()]),
            security_opt: Some(vec!["no-new-privileges".to_owned()]),
            privileged: Some(false),
            memory: Some(MEMORY),
            memory_swap: Some(MEMORY),
            nano_cpus: Some(NANO_CPUS),
            pids_limit: Some(THREADS),
            sysctls: Some(sysctls.map(|(name, value)| (name.to_owned(), value.to_owned())).into()),
            // What it writes are frames for the host alone.
            log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
            ..HostConfig::default()
        }),
        networking_config: Some(NetworkingConfig {
            endpoints_config: Some([(parts.inside.clone(), endpoint)].into()),
        }),
        ..ContainerCreateBody::default()
    }
}
