//! Reading back that the networks are what was asked for.

use bollard::models::{HostConfig, NetworkInspect};

use super::networks::NO_HOST_ADDRESS;
use super::{Gateway, Parts};
use crate::diagnostic::{Diagnostic, Result};
use crate::sandbox::docker::Docker;
use crate::sandbox::docker::errors::explain;

impl Docker {
    /// The gateway is on its two networks, alone so far, and is hardened itself.
    pub(super) async fn verify_gateway(&self, parts: &Parts) -> Result<()> {
        let inside = self.look_at(&parts.inside).await?;
        let mut weak = weaknesses(&inside);
        if members(&inside) != [parts.container.clone()] {
            weak.push("something else is on the sandbox's network");
        }
        let gateway = self
            .client
            .inspect_container(&parts.container, None)
            .await
            .map_err(|error| explain("inspect the gateway", error))?;
        let networks = gateway.network_settings.and_then(|settings| settings.networks).unwrap_or_default();
        if networks.keys().any(|network| *network != parts.inside && *network != parts.outside) {
            weak.push("the gateway is on another network as well");
        }
        weak.extend(softness(&gateway.host_config.unwrap_or_default()));
        held(&weak)
    }

    /// The sandbox is on the inner network, and on it are these two alone.
    pub(in crate::sandbox::docker) async fn verify_inside(
        &self,
        gateway: &Gateway,
        sandbox: &str,
    ) -> Result<()> {
        let parts = &gateway.parts;
        let inside = self.look_at(&parts.inside).await?;
        let mut weak = weaknesses(&inside);
        let inspected = self
            .client
            .inspect_container(sandbox, None)
            .await
            .map_err(|error| explain("inspect the container", error))?;
        let name = inspected.name.unwrap_or_default().trim_start_matches('/').to_owned();
        let mut expected = [name, parts.container.clone()];
        expected.sort();
        let found = members(&inside);
        if !found.contains(&parts.container) {
            let message = "the gateway ended before the sandbox could use it";
            return Err(Diagnostic::new("sandbox::no_gateway", message)
                .help("was it removed by hand, or out of memory? run it again"));
        }
        if found != expected {
            weak.push("something else is on the sandbox's network");
        }
        let joined = inspected.network_settings.and_then(|settings| settings.networks).unwrap_or_default();
        if joined.keys().map(String::as_str).ne([parts.inside.as_str()]) {
            weak.push("the sandbox is on another network as well");
        }
        held(&weak)
    }

    async fn look_at(&self, network: &str) -> Result<NetworkInspect> {
        self.client
            .inspect_network(network, None)
            .await
            .map_err(|error| explain("inspect the sandbox's network", error))
    }
}

fn weaknesses(network: &NetworkInspect) -> Vec<&'static str> {
    let option = network.options.as_ref().and_then(|options| options.get(NO_HOST_ADDRESS));
    [
        (network.internal != Some(true), "the sandbox's network leads out"),
        (option.map(String::as_str) != Some("true"), "the host has an address on the sandbox's network"),
        (network.enable_ipv6 == Some(true), "the sandbox's network has IPv6"),
        (network.driver.as_deref() != Some("bridge"), "the sandbox's network is of another kind"),
    ]
    .into_iter()
    .filter_map(|(weak, words)| weak.then_some(words))
    .collect()
}

/// What is weaker than it must be about the gateway's container.
fn softness(host: &HostConfig) -> Vec<&'static str> {
    let has = |list: &Option<Vec<String>>, wanted: &str| {
        list.iter().flatten().any(|one| one.to_lowercase().starts_with(wanted))
    };
    [
        (host.readonly_rootfs != Some(true), "the gateway's root can be written"),
        (!has(&host.cap_drop, "all"), "the gateway keeps capabilities"),
        (host.cap_add.iter().flatten().next().is_some(), "the gateway was given capabilities"),
        (!has(&host.security_opt, "no-new-privileges"), "the gateway may gain privileges"),
        (host.privileged == Some(true), "the gateway is privileged"),
        (host.memory.unwrap_or(0) == 0, "the gateway's memory is not limited"),
        (host.pids_limit.unwrap_or(0) <= 0, "the gateway's processes are not limited"),
    ]
    .into_iter()
    .filter_map(|(weak, words)| weak.then_some(words))
    .collect()
}

/// The names of the containers on a network, sorted.
fn members(network: &NetworkInspect) -> Vec<String> {
    let members = network.containers.iter().flat_map(|containers| containers.values());
    let mut names: Vec<String> = members.filter_map(|member| member.name.clone()).collect();
    names.sort();
    names
}

fn held(weak: &[&str]) -> Result<()> {
    if weak.is_empty() {
        return Ok(());
    }
    let message = format!("the sandbox's network is not as closed as asked for: {}", weak.join("; "));
    Err(Diagnostic::new("sandbox::weak_isolation", message)
        .help("the engine ignored what it was asked for; nothing was run. Another engine may do better"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_weakness_is_named() {
        let open = NetworkInspect { enable_ipv6: Some(true), ..NetworkInspect::default() };
        assert_eq!(weaknesses(&open).len(), 4);
        let soft = HostConfig {
            privileged: Some(true),
            cap_add: Some(vec!["NET_ADMIN".into()]),
            ..HostConfig::default()
        };
        assert_eq!(softness(&soft).len(), 7);
        let closed = NetworkInspect {
            driver: Some("bridge".into()),
            internal: Some(true),
            enable_ipv6: Some(false),
            options: Some([(NO_HOST_ADDRESS.to_owned(), "true".to_owned())].into()),
            ..NetworkInspect::default()
        };
        assert!(weaknesses(&closed).is_empty());
    }
}
