//! What a container is held to besides what its workflow says: the same for every sandbox.

use bollard::models::{HostConfig, HostConfigCgroupnsModeEnum, ResourcesUlimits};

use crate::sandbox::docker::traits::Traits;

/// Open files of a process: enough for a compiler or a data library, not for emptying the kernel's tables.
const OPEN_FILES: i64 = 8192;
/// Bytes of `/dev/shm`; they count as memory.
const SHARED_BYTES: i64 = 64 << 20;

/// Adds to what was asked for what is asked for always, as far as the engine can do it. The engine's default seccomp
/// profile, masked and read-only paths stay because nothing here names others.
///
/// There is no `nproc`, which counts a user's processes across all containers (`pids` counts this one's), and no
/// `fsize`, which would kill programs for making a sparse file (both file systems have a size of their own).
pub(super) fn harden(asked: HostConfig, engine: &Traits, runtime: Option<&str>) -> HostConfig {
    HostConfig {
        ulimits: Some(vec![limit("core", 0), limit("nofile", OPEN_FILES)]),
        shm_size: Some(SHARED_BYTES),
        ipc_mode: Some("private".to_owned()),
        cgroupns_mode: engine.own_groups.then_some(HostConfigCgroupnsModeEnum::PRIVATE),
        // An engine that cannot limit swap says so by a limit of its own, and there is nothing to compare.
        memory_swap: if engine.limits_swap { asked.memory } else { None },
        memory_swappiness: (engine.limits_swap && engine.groups == 1 && !engine.rootless).then_some(0),
        // All of a small machine is what a larger limit comes to there.
        nano_cpus: asked.nano_cpus.map(|asked| asked.min(engine.nano_cpus)),
        runtime: runtime.map(str::to_owned),
        ..asked
    }
}

fn limit(name: &str, most: i64) -> ResourcesUlimits {
    ResourcesUlimits { name: Some(name.to_owned()), soft: Some(most), hard: Some(most) }
}

#[cfg(test)]
mod tests {
    use bollard::models::SystemInfo;

    use super::*;

    #[test]
    fn no_more_processors_are_asked_for_than_there_are() {
        let asked = || HostConfig { nano_cpus: Some(2_000_000_000), ..HostConfig::default() };
        let of = |ncpu| {
            let engine = Traits::read(SystemInfo { ncpu, ..SystemInfo::default() }, true);
            harden(asked(), &engine, None).nano_cpus
        };
        assert_eq!(of(Some(1)), Some(1_000_000_000));
        assert_eq!(of(Some(64)), Some(2_000_000_000));
        // An engine that does not say is asked as it was.
        assert_eq!(of(None), Some(2_000_000_000));
    }
}
