//! What of the machine a local sandbox sees, and the command line that says so.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::sandbox::Spec;

/// Where the helper is.
pub(super) const HELPER: &str = "/.tidemill/helper";
/// Commands run as this user and group, in a user namespace of their own.
pub(super) const AGENT: u32 = 1000;
/// Bytes of `/tmp`.
const TMP_BYTES: u64 = 256 << 20;

/// Every place that shows something of this machine's, read-only.
pub fn shown() -> Vec<&'static str> {
    let made = READ_ONLY.into_iter().chain(MASKED_FILES).chain(MASKED_FOLDERS);
    PROGRAMS.into_iter().chain(SETTINGS).chain(made).chain([HELPER]).collect()
}

/// Programs and libraries. On most systems all but the first are links into it.
const PROGRAMS: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/// What programs read of `/etc`; nothing that is anybody's secret.
const SETTINGS: [&str; 8] = [
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
];

/// What of `/proc` tells of the whole machine, or changes it. The kernel judges by the user outside, who may be root.
const READ_ONLY: [&str; 5] = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];
const MASKED_FILES: [&str; 9] = [
    "/proc/kallsyms",
    "/proc/kcore",
    "/proc/keys",
    "/proc/kpagecount",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/vmallocinfo",
];
const MASKED_FOLDERS: [&str; 3] = ["/proc/acpi", "/proc/asound", "/proc/scsi"];
/// Bytes of shared memory.
const SHARED_BYTES: u64 = 64 << 20;

/// Something in the workspace before the first command.
pub(super) enum Given {
    /// A place on the host, read-only, and where it is in the sandbox.
    Bound { host: PathBuf, place: PathBuf },
    /// A folder commands may write into, and not rename or remove.
    Pinned(PathBuf),
}

/// Bubblewrap's arguments for a sandbox.
pub(super) fn arguments(
    helper: &Path,
    spec: &Spec,
    given: &[Given],
    environment: &[(String, String)],
    groups: &[(PathBuf, PathBuf)],
) -> Vec<OsString> {
    let mut line = Line::default();
    line.add(&["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net"]);
    line.add(&[
        "--unshare-cgroup-try",
        "--disable-userns",
        "--die-with-parent",
        "--new-session",
        "--as-pid-1",
    ]);
    line.add(&["--uid", &AGENT.to_string(), "--gid", &AGENT.to_string(), "--hostname", "sandbox"]);
    line.add(&["--cap-drop", "ALL", "--clearenv"]);
    for (name, value) in environment {
        line.add(&["--setenv", name, value]);
    }
    for path in PROGRAMS {
        match fs::symlink_metadata(path) {
            Ok(data) if data.is_symlink() => {
                if let Ok(target) = fs::read_link(path) {
                    line.add(&["--symlink"]).path(&target).add(&[path]);
                }
            }
            Ok(_) => drop(line.add(&["--ro-bind", path, path])),
            Err(_) => {}
        }
    }
    for path in SETTINGS {
        line.add(&["--ro-bind-try", path, path]);
    }
    line.add(&["--proc", "/proc", "--dev", "/dev"]);
    line.add(&["--perms", "1777", "--size", &SHARED_BYTES.to_string(), "--tmpfs", "/dev/shm"]);
    line.add(&["--remount-ro", "/dev"]);
    for path in READ_ONLY.into_iter().filter(|path| Path::new(path).exists()) {
        line.add(&["--ro-bind", path, path]);
    }
    for path in MASKED_FILES.into_iter().filter(|path| Path::new(path).exists()) {
        line.add(&["--ro-bind", "/dev/null", path]);
    }
    for path in MASKED_FOLDERS.into_iter().filter(|path| Path::new(path).exists()) {
        line.add(&["--size", "4096", "--tmpfs", path, "--remount-ro", path]);
    }
    for (group, place) in groups {
        line.add(&["--ro-bind-try"]).path(group).path(place);
    }
    line.add(&["--perms", "1777", "--size", &TMP_BYTES.to_string(), "--tmpfs", "/tmp"]);
    line.add(&["--perms", "0755", "--size", &spec.limits.disk.to_string(), "--tmpfs", "/workspace"]);
    line.add(&["--ro-bind"]).path(helper).add(&[HELPER]);
    for given in given {
        match given {
            Given::Bound { host, place } => drop(line.add(&["--ro-bind"]).path(host).path(place)),
            Given::Pinned(place) => {
                let size = spec.limits.disk.to_string();
                line.add(&["--perms", "0755", "--size", &size, "--tmpfs"]).path(place);
            }
        }
    }
    line.add(&["--remount-ro", "/", "--chdir", "/workspace", "--", HELPER, "init"]);
    line.0
}

#[derive(Default)]
struct Line(Vec<OsString>);

impl Line {
    fn add(&mut self, words: &[&str]) -> &mut Self {
        self.0.extend(words.iter().map(OsString::from));
        self
    }

    fn path(&mut self, path: &Path) -> &mut Self {
        self.0.push(path.into());
        self
    }
}
