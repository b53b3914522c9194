//! Reading back how isolated a container is, and refusing one that is weaker than asked for.

use std::collections::{BTreeMap, HashMap};

use bollard::models::{ContainerInspectResponse, HostConfig};

use crate::diagnostic::{Diagnostic, Result};
use crate::event::isolation::{Execution, Isolation};
use crate::sandbox::docker::container::AGENT;
use crate::sandbox::docker::differences::differences;
use crate::sandbox::docker::errors::explain;
use crate::sandbox::docker::helper::{FILE, FOLDER};
use crate::sandbox::docker::traits::Traits;
use crate::sandbox::docker::{Docker, weaknesses};

impl Docker {
    /// What the engine says of the running container. Fails when anything is not as asked for, or is weak.
    pub(super) async fn read_back(&self, id: &str, asked: &HostConfig) -> Result<Isolation> {
        let inspected = self
            .client
            .inspect_container(id, None)
            .await
            .map_err(|error| explain("inspect the container", error))?;
        if inspected.state.as_ref().and_then(|state| state.running) != Some(true) {
            return Err(Diagnostic::new("sandbox::not_running", "the container ended at once")
                .help("its image must have `sleep`; `docker logs` may say more"));
        }
        let traits = self.traits().await?;
        let found = inspected.host_config.clone().unwrap_or_default();
        let mut wrong: Vec<String> =
            traits.weakness(asked.runtime.as_deref()).into_iter().map(str::to_owned).collect();
        wrong.extend(differences(asked, &found));
        wrong.extend(weaknesses::of(asked, &found, &inspected));
        if wrong.is_empty() {
            return Ok(read(&inspected, &found, traits, &self.version));
        }
        let message = format!("the container is not as isolated as asked for: {}", wrong.join("; "));
        Err(Diagnostic::new("sandbox::weak_isolation", message).help(
            "nothing was run in it. Where the engine has no control groups for a limit, give them to it (rootless \
             Docker: systemd must delegate cpu, memory and pids); else another engine or runtime may do better. \
             docs/sandbox.md lists what is asked for",
        ))
    }
}

/// Whether the workspace's volume is as asked for: its size is the quota, and one that is ignored is none.
pub(super) fn same_options(asked: &HashMap<String, String>, found: &HashMap<String, String>) -> Result<()> {
    if asked == found {
        return Ok(());
    }
    let told = |options: &HashMap<String, String>| {
        let sorted: BTreeMap<&String, &String> = options.iter().collect();
        sorted.into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    };
    let message =
        format!("the workspace is not as asked for: asked for {}, found {}", told(asked), told(found));
    Err(Diagnostic::new("sandbox::weak_isolation", message).help(
        "nothing was run in it. The engine's `local` volume driver must take the options of a mount, as Docker's and \
         Podman's do",
    ))
}

fn read(
    inspected: &ContainerInspectResponse,
    host: &HostConfig,
    traits: &Traits,
    version: &str,
) -> Isolation {
    let host = host.clone();
    let unsigned = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok()).unwrap_or(0);
    let mounts = inspected.mounts.iter().flatten().map(|mount| {
        let kind = mount.typ.as_deref().unwrap_or("unknown");
        let access = if mount.rw == Some(false) { "ro" } else { "rw" };
        format!("{} ({kind}, {access})", mount.destination.as_deref().unwrap_or("?"))
    });
    let tmpfs = host.tmpfs.iter().flatten().map(|(path, options)| format!("{path} (tmpfs, {options})"));
    let ulimits =
        host.ulimits.iter().flatten().map(|limit| {
            format!("{}={}", limit.name.as_deref().unwrap_or("?"), limit.hard.unwrap_or_default())
        });
    let by_helper = inspected.path.as_deref() == Some(&format!("{FOLDER}/{FILE}"));
    let execution = if by_helper { Execution::Helper } else { Execution::Exec };
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
        init: host.init == Some(true) || execution == Execution::Helper,
        execution,
        weaker: Vec::new(),
        warm: None,
        refused: Vec::new(),
        runtime: host.runtime.unwrap_or_default(),
        rootless: traits.rootless,
        maps_users: traits.maps_users,
        seccomp: traits.seccomp.clone().unwrap_or_default(),
        swap_limited: traits.limits_swap,
        shared_memory_bytes: unsigned(host.shm_size),
        ulimits: ulimits.collect(),
        masked_paths: host.masked_paths.map_or(0, |paths| paths.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_that_is_ignored_is_told_with_both_sides() {
        let asked =
            HashMap::from([("o".to_owned(), "size=1".to_owned()), ("type".to_owned(), "tmpfs".to_owned())]);
        assert!(same_options(&asked, &asked).is_ok());
        let refused = same_options(&asked, &HashMap::new()).unwrap_err();
        assert!(refused.message().contains("asked for o=size=1 type=tmpfs, found "), "{refused:?}");
    }
}
