//! What kind of engine it is: what it can hold a container to, and as whom it runs.

use bollard::models::{SystemInfo, SystemInfoCgroupVersionEnum};

use crate::diagnostic::{Diagnostic, Result};
use crate::sandbox::docker::Docker;
use crate::sandbox::docker::errors::explain;

/// As the engine describes itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Traits {
    /// It runs without root: what is root inside is an ordinary user outside.
    pub(super) rootless: bool,
    /// Users inside are other users outside.
    pub(super) maps_users: bool,
    /// Version of the kernel's control groups.
    pub(super) groups: u8,
    /// Whether a container can have a view of control groups of its own.
    pub(super) own_groups: bool,
    /// Whether it can limit swap.
    pub(super) limits_swap: bool,
    /// Its processors, in billionths; it refuses a container more than it has.
    pub(super) nano_cpus: i64,
    /// Its profile of system calls; nothing when it has none.
    pub(super) seccomp: Option<String>,
    /// Runtimes it knows, in order.
    pub(super) runtimes: Vec<String>,
    /// The one it takes when none is named.
    pub(super) runtime: String,
}

/// Runtimes that share the host's kernel: without a filter of system calls nothing stands before it.
const SHARE_KERNEL: [&str; 4] = ["runc", "crun", "youki", "io.containerd.runc.v2"];

impl Docker {
    /// Asks once.
    pub(super) async fn traits(&self) -> Result<&Traits> {
        let ask = || async {
            let info = self.client.info().await;
            let info = info.map_err(|error| explain("ask the engine about itself", error))?;
            let version = self.client.client_version();
            // 1.41 began to know of control groups of one's own.
            Ok(Traits::read(info, (version.major_version, version.minor_version) >= (1, 41)))
        };
        self.traits.get_or_try_init(ask).await
    }

    /// The runtime to ask for: the one the project names, which the engine must have.
    pub(super) fn runtime<'a>(&'a self, traits: &Traits) -> Result<Option<&'a str>> {
        let Some(name) = self.settings.runtime.as_deref() else {
            return Ok(None);
        };
        if traits.runtimes.iter().any(|known| known == name) {
            return Ok(Some(name));
        }
        let known = traits.runtimes.join(", ");
        Err(Diagnostic::new("sandbox::no_runtime", format!("the engine has no runtime `{name}`; it has {known}"))
            .help("install it and name it in the engine's daemon.json, or take `runtime` out of [sandbox] in tidemill.toml"))
    }
}

impl Traits {
    pub(super) fn read(info: SystemInfo, own_groups: bool) -> Self {
        let options = info.security_options.unwrap_or_default();
        let option = |name: &str| {
            options
                .iter()
                .find(|option| option.split(',').any(|part| part == format!("name={name}") || part == name))
        };
        let seccomp = option("seccomp").map(|option| {
            let profile = option.split(',').find_map(|part| part.strip_prefix("profile="));
            profile.unwrap_or("default").to_owned()
        });
        let mut runtimes: Vec<String> = info.runtimes.unwrap_or_default().into_keys().collect();
        runtimes.sort();
        let rootless = option("rootless").is_some();
        Self {
            rootless,
            maps_users: rootless || option("userns").is_some(),
            groups: if info.cgroup_version == Some(SystemInfoCgroupVersionEnum::_2) { 2 } else { 1 },
            own_groups,
            limits_swap: info.swap_limit == Some(true),
            nano_cpus: info
                .ncpu
                .filter(|count| *count > 0)
                .map_or(i64::MAX, |count| count.saturating_mul(1_000_000_000)),
            seccomp,
            runtimes,
            runtime: info.default_runtime.unwrap_or_else(|| "runc".to_owned()),
        }
    }

    /// What makes every sandbox of this engine weak, with `runtime` or its usual one.
    pub(super) fn weakness(&self, runtime: Option<&str>) -> Option<&'static str> {
        let shares = SHARE_KERNEL.contains(&runtime.unwrap_or(&self.runtime));
        match self.seccomp.as_deref() {
            Some("unconfined") if shares => Some("the engine's profile of system calls is `unconfined`"),
            None if shares => Some("the engine filters no system calls"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(options: &[&str]) -> SystemInfo {
        let security_options = Some(options.iter().map(|option| (*option).to_owned()).collect());
        SystemInfo { security_options, ..SystemInfo::default() }
    }

    #[test]
    fn rootless_and_mapped_engines_are_known_by_their_options() {
        let rootless =
            Traits::read(info(&["name=seccomp,profile=builtin", "name=rootless", "name=cgroupns"]), true);
        assert!(rootless.rootless && rootless.maps_users);
        assert_eq!((rootless.seccomp.as_deref(), rootless.weakness(None)), (Some("builtin"), None));
        let mapped = Traits::read(info(&["name=userns", "name=seccomp,profile=default"]), true);
        assert!(!mapped.rootless && mapped.maps_users);
    }

    #[test]
    fn a_kernel_that_is_shared_needs_a_filter() {
        for options in [&["name=seccomp,profile=unconfined"][..], &["name=apparmor"]] {
            let engine = Traits::read(info(options), true);
            assert!(engine.weakness(None).is_some(), "{options:?}");
            assert_eq!(engine.weakness(Some("runsc")), None);
        }
    }
}
