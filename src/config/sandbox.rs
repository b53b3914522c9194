//! `[sandbox]`: the runtime, and which folders of the host a sandbox may see.

use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

use crate::workflow::manifest::Access;

/// What every sandbox of the project has.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sandbox {
    /// The engine's low-level runtime, e.g. `runsc`; the engine's usual one when absent.
    pub runtime: Option<String>,
    /// Folders of the host that workflows may ask for: the only way to a host mount.
    pub mounts: Vec<HostMount>,
    /// Containers that `tidemill watch` keeps ready for each image and shape it has seen.
    pub warm: usize,
    /// Containers that stand ready in all.
    pub warm_total: usize,
}

impl Default for Sandbox {
    fn default() -> Self {
        Self { runtime: None, mounts: Vec::new(), warm: 0, warm_total: 8 }
    }
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostMount {
    /// Absolute path on the host.
    pub host: PathBuf,
    /// Absolute path in the sandbox; workflows ask for it by this.
    pub at: String,
    /// What commands may do with it.
    #[serde(default, deserialize_with = "access")]
    pub access: Access,
}

/// What no sandbox sees, nor anything that holds one of these: the machine itself, and engines' sockets.
const NEVER: [&str; 11] = [
    "/proc",
    "/sys",
    "/dev",
    "/etc",
    "/run",
    "/var/run",
    "/boot",
    "/var/lib/docker",
    "/var/lib/containerd",
    "/var/lib/containers",
    "/var/lib/kubelet",
];
/// What no sandbox sees of anybody's home: keys, and the store of an engine that runs without root.
const NEVER_AT_HOME: [&str; 8] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".kube",
    ".docker",
    ".config/gcloud",
    ".local/share/docker",
    ".local/share/containers",
];
/// Where the sandbox has its own.
const TAKEN: [&str; 14] = [
    "/workspace",
    "/tmp",
    "/proc",
    "/sys",
    "/dev",
    "/etc",
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/run",
    "/var/run",
    "/.tidemill",
];

impl Sandbox {
    /// The first thing wrong with the mounts: the text it stands at, and what it is.
    pub(super) fn mistake(&self) -> Option<(String, String)> {
        for (index, mount) in self.mounts.iter().enumerate() {
            let (host, at) = (mount.host.display().to_string(), mount.at.as_str());
            if let Err(why) = allowed(&mount.host) {
                return Some((host.clone(), format!("`{host}` cannot be mounted: {why}")));
            }
            let place = Path::new(at);
            if !place.is_absolute() || !is_plain(place) || at.ends_with('/') {
                return Some((at.to_owned(), format!("`{at}` is not an absolute path such as `/ref`")));
            }
            if TAKEN.iter().any(|taken| place.starts_with(taken)) || at.contains([',', ':']) {
                return Some((at.to_owned(), format!("`{at}` is the sandbox's own place")));
            }
            if self.mounts[..index]
                .iter()
                .any(|other| Path::new(&other.at).starts_with(place) || place.starts_with(&other.at))
            {
                return Some((at.to_owned(), format!("`{at}` is in the way of another mount")));
            }
        }
        None
    }
}

/// Whether a folder of the host may be seen by a sandbox; the error is a fragment such as "it is not absolute".
pub fn allowed(host: &Path) -> Result<(), String> {
    if !host.is_absolute() || !is_plain(host) {
        return Err("it is not an absolute path without `..`".to_owned());
    }
    for never in NEVER.map(Path::new) {
        if host.starts_with(never) || never.starts_with(host) {
            return Err(format!("{} is never given to a sandbox", never.display()));
        }
    }
    for never in NEVER_AT_HOME.map(Path::new) {
        if host.ancestors().any(|folder| folder.ends_with(never))
            || host.join(never).symlink_metadata().is_ok()
        {
            return Err(format!("{} is never given to a sandbox", never.display()));
        }
    }
    if host.components().any(|part| part.as_os_str() == ".tidemill") {
        return Err("a project's own state is never given to a sandbox".to_owned());
    }
    if host.extension().is_some_and(|extension| extension == "sock") {
        return Err("a socket is never given to a sandbox".to_owned());
    }
    Ok(())
}

fn is_plain(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
}

fn access<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Access, D::Error> {
    match String::deserialize(deserializer)?.as_str() {
        "ro" => Ok(Access::ReadOnly),
        "rw" => Ok(Access::ReadWrite),
        other => Err(serde::de::Error::custom(format!("`{other}` is neither `ro` nor `rw`"))),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    fn mistake(mount: &str) -> String {
        let text = format!("[sandbox]\nmounts = [{mount}]\n");
        Config::parse(&text).map_or_else(|error| error.message().to_owned(), |_| String::new())
    }

    #[test]
    fn a_folder_of_data_may_be_mounted() {
        assert_eq!(mistake(r#"{ host = "/data/ref", at = "/ref", access = "ro" }"#), "");
    }

    #[test]
    fn the_machine_itself_is_never_mounted() {
        for host in [
            "/",
            "/proc",
            "/proc/1",
            "/sys/fs",
            "/dev",
            "/etc",
            "/etc/ssl",
            "/run",
            "/var",
            "/var/run/docker.sock",
            "/srv/engine.sock",
            "data",
            "/data/../etc",
            "/srv/project/.tidemill/runs",
            "/var/lib/docker/volumes",
            "/var/lib/containerd",
            "/root/.ssh",
            "/home/me/.aws/sso",
            "/home/me/.local/share/docker/volumes",
        ] {
            let said = mistake(&format!(r#"{{ host = "{host}", at = "/ref" }}"#));
            assert!(said.contains("cannot be mounted"), "{host}: {said}");
        }
    }

    #[test]
    fn a_home_with_keys_in_it_is_never_mounted() {
        let home = tempfile::tempdir().expect("a folder");
        let mount = format!(r#"{{ host = "{}", at = "/ref" }}"#, home.path().display());
        assert_eq!(mistake(&mount), "");
        std::fs::create_dir(home.path().join(".ssh")).expect("a folder in it");
        assert!(mistake(&mount).contains(".ssh is never given"));
    }

    #[test]
    fn the_sandboxs_own_places_stay_its_own() {
        for at in
            ["/", "/workspace", "/workspace/x", "/tmp", "/etc/ref", "ref", "/ref/../etc", "/ref/", "/a:b"]
        {
            assert!(!mistake(&format!(r#"{{ host = "/data", at = "{at}" }}"#)).is_empty(), "{at}");
        }
        let two = r#"{ host = "/data", at = "/ref" }, { host = "/more", at = "/ref/more" }"#;
        assert!(mistake(two).contains("in the way"));
    }
}
