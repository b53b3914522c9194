//! What is mounted, and how.

use super::attempt::words;
use super::{Asked, Held, Probe};

pub(super) const PROBES: &[Probe] = &[
    Probe::new("mounts/root-read-only", "The root is mounted read-only.", root_read_only),
    Probe::new(
        "mounts/nothing-foreign",
        "No folder of the host is inside but what the project file allows.",
        nothing_foreign,
    ),
    Probe::new(
        "mounts/no-devices-or-setuid",
        "Neither device files nor set-uid programs work where commands can write.",
        options,
    ),
    Probe::new(
        "mounts/sys-read-only",
        "The kernel's settings under /sys are mounted read-only.",
        sys_read_only,
    ),
];

/// One line of `/proc/self/mountinfo`.
struct Mount {
    point: String,
    options: String,
    kind: String,
    inner: String,
}

fn mounts() -> Result<Vec<Mount>, String> {
    let text = std::fs::read_to_string("/proc/self/mountinfo").map_err(|error| words(&error))?;
    Ok(text.lines().filter_map(parse).collect())
}

fn parse(line: &str) -> Option<Mount> {
    let (own, rest) = line.split_once(" - ")?;
    let mut own = own.split(' ').skip(4);
    let (point, options) = (own.next()?.to_owned(), own.next()?.to_owned());
    let mut rest = rest.split(' ');
    let (kind, inner) = (rest.next()?.to_owned(), rest.nth(1).unwrap_or_default().to_owned());
    Some(Mount { point, options, kind, inner })
}

impl Mount {
    fn has(&self, option: &str) -> bool {
        self.options.split(',').any(|one| one == option)
    }

    fn read_only(&self) -> bool {
        self.has("ro") || self.inner.split(',').any(|one| one == "ro")
    }
}

/// The mount at `point` that counts: the last one over it.
fn at(point: &str) -> Result<Mount, String> {
    let found = mounts()?.into_iter().rev().find(|mount| mount.point == point);
    found.ok_or_else(|| format!("nothing is mounted at {point}"))
}

fn root_read_only(_: &Asked) -> Held {
    let root = at("/")?;
    if root.read_only() { Ok(root.kind) } else { Err(format!("{} is writable", root.kind)) }
}

fn nothing_foreign(asked: &Asked) -> Held {
    /// What every container has of its engine: files the engine writes for it.
    const FILES: [&str; 4] = ["/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/run/.containerenv"];
    /// The engine's own first process, which no command can change.
    const INITS: [&str; 5] =
        ["/sbin/docker-init", "/usr/sbin/docker-init", "/dev/init", "/run/podman-init", "/catatonit"];
    /// Where the engine and the kernel put their own.
    const SYSTEM: [&str; 3] = ["/proc", "/sys", "/dev"];
    /// File systems that hold nothing of the host's files.
    const KINDS: [&str; 10] =
        ["proc", "sysfs", "tmpfs", "devtmpfs", "devpts", "mqueue", "cgroup", "cgroup2", "overlay", "shm"];
    let mut foreign = Vec::new();
    for mount in mounts()? {
        let below = |folder: &str| mount.point == folder || mount.point.starts_with(&format!("{folder}/"));
        let asked_for = asked.mounts.contains(&mount.point);
        let ours = mount.point == "/" || FILES.contains(&mount.point.as_str()) || asked_for;
        let ours = ours || INITS.contains(&mount.point.as_str()) && mount.read_only();
        let systems = SYSTEM.into_iter().any(below) && KINDS.contains(&mount.kind.as_str());
        if !ours && !systems {
            foreign.push(format!("{} ({})", mount.point, mount.kind));
        }
    }
    if foreign.is_empty() { Ok("only what every sandbox has".to_owned()) } else { Err(foreign.join(", ")) }
}

fn options(_: &Asked) -> Held {
    let mut checked = 0;
    for mount in mounts()?.into_iter().filter(|mount| !mount.read_only()) {
        let system = ["/proc", "/sys", "/dev/pts"].iter().any(|folder| mount.point.starts_with(folder));
        if system {
            continue;
        }
        checked += 1;
        // Devices are what /dev is for; which ones is another probe's question.
        let device = mount.point.strip_prefix("/dev/").is_some_and(|name| !name.contains('/'));
        let devices = mount.has("nodev") || mount.point == "/dev" || device;
        if !mount.has("nosuid") || !devices {
            return Err(format!("{} has {}", mount.point, mount.options));
        }
    }
    Ok(format!("{checked} writable mounts have nosuid and nodev"))
}

fn sys_read_only(_: &Asked) -> Held {
    // The folder that older control groups are mounted in is the container's own, and root's.
    let groups = |mount: &Mount| mount.point == "/sys/fs/cgroup" && mount.kind == "tmpfs";
    let writable: Vec<String> = mounts()?
        .into_iter()
        .filter(|mount| mount.point == "/sys" || mount.point.starts_with("/sys/"))
        .filter(|mount| !mount.read_only() && !groups(mount))
        .map(|mount| mount.point)
        .collect();
    if writable.is_empty() { Ok("all of it".to_owned()) } else { Err(writable.join(", ")) }
}
