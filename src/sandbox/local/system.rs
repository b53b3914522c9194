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

/// Something given to commands, read-only: a place on the host, and where it is in the sandbox.
pub(super) struct Given {
    pub(super) host: PathBuf,
    pub(super) place: PathBuf,
}

/// Bubblewrap's arguments for a sandbox.
pub(super) fn arguments(
    helper: &Path,
    spec: &Spec,
    given: &[Given],
    environment: &[(String, String)],
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
    line.add(&["--perms", "1777", "--size", &TMP_BYTES.to_string(), "--tmpfs", "/tmp"]);
    line.add(&["--perms", "0755", "--size", &spec.limits.disk.to_string(), "--tmpfs", "/workspace"]);
    line.add(&["--ro-bind"]).path(helper).add(&[HELPER]);
    for Given { host, place } in given {
        line.add(&["--ro-bind"]).path(host).path(place);
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
