//! A control group for one sandbox, where this process may make one; limits per process otherwise.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::workflow::limits::Limits;

/// Where control groups are.
const ROOT: &str = "/sys/fs/cgroup";
/// The file in a sandbox's folder that names its groups.
const GROUPS: &str = "groups";
/// Microseconds of a period of processor time.
const PERIOD: u64 = 100_000;

/// How long the kernel may take to end what was killed, in tries.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);

/// Holds the process `pid`, and all it will start, to the limits: together where this process may make control groups,
/// each by itself in any case. `folder` is the sandbox's own, and names the groups.
pub(super) fn hold(pid: u32, folder: &Path, limits: &Limits) -> io::Result<()> {
    let together = groups(folder).is_some_and(|groups| {
        groups.iter().try_for_each(|group| group.make(limits).and_then(|()| group.enter(pid))).is_ok()
    });
    limit(pid, &[(Resource::Core, 0), (Resource::Data, limits.memory)])?;
    if !together {
        // Not this process's to make: the limits of each process have to do. The kernel counts the user's processes
        // outside as well, so those that run already come on top.
        release(folder);
        limit(pid, &[(Resource::Nproc, limits.pids + processes_of_user())])?;
    }
    Ok(())
}

/// Whether [`hold`] will be able to hold all processes together, tried with a group of no limits.
pub(super) fn can_hold_together(folder: &Path) -> bool {
    // First: whoever sweeps after this process may be in another group, and would look for them elsewhere.
    let paths: Vec<String> =
        groups(folder).into_iter().flatten().map(|group| group.path.to_string_lossy().into_owned()).collect();
    if fs::write(folder.join(GROUPS), paths.join("\n")).is_err() {
        return false;
    }
    let made =
        groups(folder).is_some_and(|groups| groups.iter().all(|group| fs::create_dir(&group.path).is_ok()));
    release(folder);
    made
}

/// Threads of this process's user, all of which count.
fn processes_of_user() -> u64 {
    let user = rustix::process::getuid().as_raw();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let own = entries.filter(|entry| entry.metadata().is_ok_and(|data| data.uid() == user));
    own.filter_map(|entry| Some(fs::read_dir(entry.path().join("task")).ok()?.count() as u64)).sum()
}

/// Removes a sandbox's groups. Whether none is left.
pub(super) fn release(folder: &Path) -> bool {
    let paths = fs::read_to_string(folder.join(GROUPS)).unwrap_or_default();
    let left = paths.lines().map(Path::new).filter(|path| {
        // Only groups of ours: the file lies where only this user writes, and still is only a file.
        let ours = path.starts_with(ROOT)
            && path
                .file_name()
                .and_then(|name| name.to_str())
                .is_some_and(|name| name.starts_with("tidemill-"));
        // One that was never made is none.
        ours && fs::remove_dir(path).is_err() && path.exists()
    });
    left.count() == 0
}

/// Removes a sandbox's groups as soon as its processes, which were killed, have ended.
pub(super) async fn release_patiently(folder: &Path) {
    for _ in 0..TRIES {
        if release(folder) {
            return;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Where the groups of a sandbox are, and where they are seen from within, as in a container.
pub(super) fn views(folder: &Path) -> Vec<(PathBuf, PathBuf)> {
    let groups = groups(folder).into_iter().flatten();
    groups.map(|group| (group.path.clone(), Path::new(ROOT).join(group.seen_at))).collect()
}

/// Settings by file name.
struct Group {
    /// Below the root of control groups, from within.
    seen_at: String,
    path: PathBuf,
    settings: fn(&Limits) -> Vec<(&'static str, String)>,
}

impl Group {
    fn make(&self, limits: &Limits) -> io::Result<()> {
        fs::create_dir(&self.path)?;
        for (file, value) in (self.settings)(limits) {
            match fs::write(self.path.join(file), value) {
                // Swap accounting is not compiled into every kernel.
                Err(error) if file.contains("sw") && error.kind() == io::ErrorKind::NotFound => {}
                other => other?,
            }
        }
        Ok(())
    }

    fn enter(&self, pid: u32) -> io::Result<()> {
        fs::write(self.path.join("cgroup.procs"), pid.to_string())
    }
}

/// The groups of a sandbox: one with the unified hierarchy, three without.
fn groups(folder: &Path) -> Option<Vec<Group>> {
    let name = format!("tidemill-{}", folder.file_name()?.to_str()?);
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path_of = |controller: &str| {
        own.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let controllers = parts.next()?;
            let path = parts.next()?.trim_start_matches('/');
            controllers.split(',').any(|one| one == controller).then(|| path.to_owned())
        })
    };
    if Path::new(ROOT).join("cgroup.controllers").exists() {
        let path = Path::new(ROOT).join(path_of("")?).join(name);
        return Some(vec![Group { seen_at: String::new(), path, settings: unified }]);
    }
    let group = |controller: &str, settings| {
        let path = Path::new(ROOT).join(controller).join(path_of(controller)?).join(&name);
        Some(Group { seen_at: controller.to_owned(), path, settings })
    };
    Some(vec![group("memory", memory)?, group("pids", pids)?, group("cpu", processor)?])
}

fn unified(limits: &Limits) -> Vec<(&'static str, String)> {
    vec![
        ("memory.max", limits.memory.to_string()),
        ("memory.swap.max", "0".to_owned()),
        ("pids.max", limits.pids.to_string()),
        ("cpu.max", format!("{} {PERIOD}", quota(limits))),
    ]
}

fn memory(limits: &Limits) -> Vec<(&'static str, String)> {
    let bytes = limits.memory.to_string();
    vec![("memory.limit_in_bytes", bytes.clone()), ("memory.memsw.limit_in_bytes", bytes)]
}

fn pids(limits: &Limits) -> Vec<(&'static str, String)> {
    vec![("pids.max", limits.pids.to_string())]
}

fn processor(limits: &Limits) -> Vec<(&'static str, String)> {
    vec![("cpu.cfs_period_us", PERIOD.to_string()), ("cpu.cfs_quota_us", quota(limits).to_string())]
}

/// Microseconds of processor time in a period.
fn quota(limits: &Limits) -> u64 {
    (limits.nano_cpus / 1_000_000 * PERIOD / 1000).max(1000)
}

/// Limits of a process, inherited by what it starts.
fn limit(pid: u32, limits: &[(Resource, u64)]) -> rustix::io::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    for (resource, most) in limits {
        prlimit(pid, *resource, Rlimit { current: Some(*most), maximum: Some(*most) })?;
    }
    Ok(())
}
