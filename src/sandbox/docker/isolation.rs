//! Reading back how isolated a container is, and refusing one that is weaker than asked for.

use bollard::models::ContainerInspectResponse;

use crate::diagnostic::{Diagnostic, Result};
use crate::event::isolation::Isolation;
use crate::sandbox::docker::Docker;
use crate::sandbox::docker::container::{AGENT, WORKSPACE};
use crate::sandbox::docker::errors::explain;
use crate::sandbox::docker::gateway::{Gateway, trust};
use crate::workflow::network::Network;

impl Docker {
    /// What the engine says of the running container. Fails when something is weaker than it must be.
    pub(super) async fn read_back(
        &self,
        id: &str,
        network: &Network,
        gateway: Option<&Gateway>,
    ) -> Result<Isolation> {
        let inspected = self
            .client
            .inspect_container(id, None)
            .await
            .map_err(|error| explain("inspect the container", error))?;
        if inspected.state.as_ref().and_then(|state| state.running) != Some(true) {
            return Err(Diagnostic::new("sandbox::not_running", "the container ended at once")
                .help("its image must have `sleep`; `docker logs` may say more"));
        }
        let mut isolation = read(&inspected, &self.version);
        let weak = weaknesses(&isolation, gateway.map_or("none", |gateway| gateway.parts.inside.as_str()));
        if let Some(gateway) = gateway {
            self.verify_inside(gateway, id).await?;
            // The network is of this run alone, so its name says nothing: what goes through it does.
            isolation.network = network.to_string();
        }
        if weak.is_empty() {
            return Ok(isolation);
        }
        Err(Diagnostic::new("sandbox::weak_isolation", format!("the container is not as isolated as asked for: {}", weak.join("; ")))
            .help("the engine ignored what it was asked for; nothing was run in it. Another engine or runtime may do better"))
    }
}

fn read(inspected: &ContainerInspectResponse, version: &str) -> Isolation {
    let host = inspected.host_config.clone().unwrap_or_default();
    let unsigned = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok()).unwrap_or(0);
    let mounts = inspected.mounts.iter().flatten().map(|mount| {
        let kind = mount.typ.as_deref().unwrap_or("unknown");
        let access = if mount.rw == Some(false) { "ro" } else { "rw" };
        format!("{} ({kind}, {access})", mount.destination.as_deref().unwrap_or("?"))
    });
    let tmpfs = host.tmpfs.iter().flatten().map(|(path, options)| format!("{path} (tmpfs, {options})"));
    Isolation {
        engine: format!("docker {version}"),
        image: inspected.image.clone().unwrap_or_default(),
        user: AGENT.to_owned(),
        network: host.network_mode.unwrap_or_default(),
        read_only_root: host.readonly_rootfs == Some(true),
        capabilities_dropped: host.cap_drop.unwrap_or_default(),
        capabilities_added: host.cap_add.unwrap_or_default(),
        security_options: host.security_opt.unwrap_or_default(),
        privileged: host.privileged == Some(true),
        memory_bytes: unsigned(host.memory),
        nano_cpus: unsigned(host.nano_cpus),
        pids: unsigned(host.pids_limit),
        mounts: mounts.chain(tmpfs).collect(),
        init: host.init == Some(true),
        runtime: host.runtime.unwrap_or_default(),
    }
}

/// What is weaker than it must be; `network` is the only one it may be on.
fn weaknesses(isolation: &Isolation, network: &str) -> Vec<String> {
    let dropped_all = isolation.capabilities_dropped.iter().any(|name| name.eq_ignore_ascii_case("all"));
    let no_new = isolation.security_options.iter().any(|option| option.starts_with("no-new-privileges"));
    let unconfined = isolation.security_options.iter().any(|option| option.contains("unconfined"));
    let workspace = format!("{WORKSPACE} (volume");
    let trust = format!("{} (volume", trust::FOLDER);
    let foreign_mount = isolation.mounts.iter().any(|mount| {
        !mount.starts_with(&workspace) && !mount.starts_with(&trust) && !mount.starts_with("/tmp (tmpfs")
    });
    [
        (isolation.network != network, "it has another network"),
        (!isolation.read_only_root, "its root can be written"),
        (!dropped_all, "it keeps capabilities"),
        (!isolation.capabilities_added.is_empty(), "it was given capabilities"),
        (!no_new, "it may gain privileges"),
        (unconfined, "its system calls are not confined"),
        (isolation.privileged, "it is privileged"),
        (isolation.memory_bytes == 0, "its memory is not limited"),
        (isolation.pids == 0, "its processes are not limited"),
        (isolation.nano_cpus == 0, "its processor time is not limited"),
        (foreign_mount, "something besides the workspace is mounted"),
    ]
    .into_iter()
    .filter(|(weak, _)| *weak)
    .map(|(_, words)| words.to_owned())
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_weakness_is_named() {
        let weak = Isolation {
            engine: String::new(),
            image: String::new(),
            user: String::new(),
            network: "bridge".into(),
            read_only_root: false,
            capabilities_dropped: vec![],
            capabilities_added: vec!["SYS_ADMIN".into()],
            security_options: vec!["seccomp=unconfined".into()],
            privileged: true,
            memory_bytes: 0,
            nano_cpus: 0,
            pids: 0,
            mounts: vec!["/var/run/docker.sock (bind, rw)".into()],
            init: false,
            runtime: String::new(),
        };
        assert_eq!(weaknesses(&weak, "none").len(), 11);
    }
}
