//! What must not be so whatever was asked for: a fault of ours must not make a weak sandbox either.

use bollard::models::{ContainerInspectResponse, HostConfig};

/// Everything weak about it, in words.
pub(super) fn of(
    asked: &HostConfig,
    found: &HostConfig,
    inspected: &ContainerInspectResponse,
) -> Vec<String> {
    let mut weak = Vec::new();
    let mut note = |is_weak: bool, words: &str| {
        if is_weak {
            weak.push(words.to_owned());
        }
    };
    let options = || found.security_opt.iter().flatten();
    let dropped = found.cap_drop.iter().flatten().any(|name| name.eq_ignore_ascii_case("all"));
    let zero = |limit: Option<i64>| limit.is_none_or(|limit| limit <= 0);
    let hosts = |mode: &Option<String>| {
        mode.as_deref().is_some_and(|mode| mode == "host" || mode.starts_with("container:"))
    };
    note(found.readonly_rootfs != Some(true), "its root can be written");
    note(!dropped, "it keeps capabilities");
    note(any(found.cap_add.as_ref()), "it was given capabilities");
    note(!options().any(|option| option.starts_with("no-new-privileges")), "it may gain privileges");
    note(options().any(|option| option.contains("unconfined")), "its system calls are not confined");
    note(options().any(|option| option.ends_with("disable")), "its labels are switched off");
    note(found.privileged == Some(true), "it is privileged");
    note(zero(found.memory), "its memory is not limited");
    note(zero(found.pids_limit), "its processes are not limited");
    note(zero(found.nano_cpus) && zero(found.cpu_quota), "its processor time is not limited");
    note(found.oom_kill_disable == Some(true), "it is not ended when its memory is used up");
    note(any(found.devices.as_ref()) || any(found.device_requests.as_ref()), "it was given devices");
    note(any(found.device_cgroup_rules.as_ref()), "it may use devices");
    note(any(found.binds.as_ref()) || any(found.volumes_from.as_ref()), "folders are bound into it");
    note(any(found.group_add.as_ref()), "it was given groups");
    let settings = |host: &HostConfig| host.sysctls.clone().unwrap_or_default();
    note(settings(found) != settings(asked), "it has kernel settings of its own");
    note(hosts(&found.network_mode), "it has another's network");
    note(hosts(&found.pid_mode), "it sees another's processes");
    note(hosts(&found.ipc_mode), "it shares memory with others");
    note(hosts(&found.uts_mode), "it has the host's name");
    note(hosts(&found.userns_mode), "its users are the host's though the engine maps users");
    note(found.masked_paths.as_ref().is_some_and(Vec::is_empty), "nothing of /proc is masked");
    note(found.readonly_paths.as_ref().is_some_and(Vec::is_empty), "the kernel's settings can be written");
    note(found.publish_all_ports == Some(true), "its ports are published");
    let foreign = foreign_mounts(asked, inspected);
    let words = format!("{foreign} is mounted and was not asked for (is it a VOLUME of the image?)");
    note(!foreign.is_empty(), &words);
    note(socket_mount(inspected), "an engine's socket is mounted");
    weak
}

fn any<T>(list: Option<&Vec<T>>) -> bool {
    list.is_some_and(|list| !list.is_empty())
}

/// Places where nothing was asked for, e.g. `/data, /more`.
fn foreign_mounts(asked: &HostConfig, inspected: &ContainerInspectResponse) -> String {
    let wanted = |place: &str| {
        asked.mounts.iter().flatten().any(|mount| mount.target.as_deref() == Some(place))
            || asked.tmpfs.as_ref().is_some_and(|tmpfs| tmpfs.contains_key(place))
    };
    let places = inspected.mounts.iter().flatten().map(|mount| mount.destination.as_deref().unwrap_or("?"));
    places.filter(|place| !wanted(place)).collect::<Vec<_>>().join(", ")
}

fn socket_mount(inspected: &ContainerInspectResponse) -> bool {
    let bound = inspected.mounts.iter().flatten().filter(|mount| mount.typ.as_deref() == Some("bind"));
    bound.filter_map(|mount| mount.source.as_deref()).any(|source| {
        std::path::Path::new(source).extension().is_some_and(|extension| extension == "sock")
            || source.trim_end_matches('/').ends_with("/run")
            || source == "/"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_weakness_is_named() {
        let found = HostConfig {
            cap_add: Some(vec!["SYS_ADMIN".into()]),
            security_opt: Some(vec!["seccomp=unconfined".into(), "label=disable".into()]),
            privileged: Some(true),
            oom_kill_disable: Some(true),
            device_cgroup_rules: Some(vec!["a *:* rwm".into()]),
            devices: Some(vec![bollard::models::DeviceMapping::default()]),
            binds: Some(vec!["/:/host".into()]),
            group_add: Some(vec!["docker".into()]),
            sysctls: Some([("kernel.shmmax".to_owned(), "1".to_owned())].into()),
            network_mode: Some("host".into()),
            pid_mode: Some("host".into()),
            ipc_mode: Some("host".into()),
            uts_mode: Some("host".into()),
            userns_mode: Some("host".into()),
            masked_paths: Some(vec![]),
            readonly_paths: Some(vec![]),
            publish_all_ports: Some(true),
            ..HostConfig::default()
        };
        let socket = bollard::models::MountPoint {
            typ: Some("bind".into()),
            source: Some("/var/run/docker.sock".into()),
            destination: Some("/var/run/docker.sock".into()),
            ..bollard::models::MountPoint::default()
        };
        let inspected =
            ContainerInspectResponse { mounts: Some(vec![socket]), ..ContainerInspectResponse::default() };
        let weak = of(&HostConfig::default(), &found, &inspected);
        assert_eq!(weak.len(), 26, "{weak:#?}");
    }
}
