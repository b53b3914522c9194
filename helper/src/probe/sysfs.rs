//! The kernel's switches under `/sys`, control groups among them.

use std::fs;
use std::path::{Path, PathBuf};

use super::attempt::{none_listable, none_writable};
use super::{Asked, Held, Probe};

pub(super) const PROBES: &[Probe] = &[
    Probe::new(
        "sys/release-agent",
        "No program can be named that the host runs when a group of processes ends.",
        release_agent,
    ),
    Probe::new("sys/limits", "The container's own limits cannot be raised from inside.", limits),
    Probe::new("sys/new-group", "No group of processes with other limits can be made.", new_group),
    Probe::new(
        "sys/event-helper",
        "No program can be named that the host runs on a device's event.",
        event_helper,
    ),
    Probe::new("sys/kernel-views", "Debugging and tracing of the kernel are closed.", kernel_views),
];

const GROUPS: &str = "/sys/fs/cgroup";

/// The folders of the control groups: one, or one for each controller.
fn groups() -> Vec<PathBuf> {
    let root = Path::new(GROUPS).to_owned();
    let below = fs::read_dir(&root).into_iter().flatten().flatten();
    let folders = below.map(|entry| entry.path()).filter(|path| path.is_dir());
    std::iter::once(root).chain(folders).collect()
}

fn each(names: &[&str]) -> Held {
    let paths: Vec<String> = groups()
        .iter()
        .flat_map(|folder| names.iter().map(|name| folder.join(name).to_string_lossy().into_owned()))
        .collect();
    none_writable(&paths.iter().map(String::as_str).collect::<Vec<_>>())
}

fn release_agent(_: &Asked) -> Held {
    each(&["release_agent", "notify_on_release"])
}

fn limits(_: &Asked) -> Held {
    each(&[
        "memory.limit_in_bytes",
        "memory.max",
        "pids.max",
        "cpu.cfs_quota_us",
        "cpu.max",
        "devices.allow",
        "cgroup.procs",
        "cgroup.subtree_control",
    ])
}

fn new_group(_: &Asked) -> Held {
    for folder in groups() {
        let path = folder.join("tidemill-probe");
        if fs::create_dir(&path).is_ok() {
            // An empty group is in nobody's way.
            let _ = fs::remove_dir(&path);
            return Err(format!("one was made in {}", folder.display()));
        }
    }
    Ok("none can be made".to_owned())
}

fn event_helper(_: &Asked) -> Held {
    none_writable(&[
        "/sys/kernel/uevent_helper",
        "/sys/kernel/uevent_seqnum",
        "/sys/power/state",
        "/sys/power/disk",
        "/sys/module/kernel/parameters/panic",
        "/sys/kernel/mm/transparent_hugepage/enabled",
    ])
}

fn kernel_views(_: &Asked) -> Held {
    none_listable(&[
        "/sys/kernel/debug",
        "/sys/kernel/tracing",
        "/sys/kernel/security",
        "/sys/fs/bpf",
        "/sys/fs/pstore",
    ])
}
