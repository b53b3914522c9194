//! Folders of the host in a sandbox: only those the project file lists, and only those a workflow asks for.

use bollard::models::{Mount, MountBindOptions, MountBindOptionsPropagationEnum, MountType};

use crate::config::{HostMount, allowed};
use crate::diagnostic::{Diagnostic, Result};
use crate::sandbox::docker::Docker;
use crate::workflow::manifest::Access;

impl Docker {
    /// The mounts at these places.
    pub(super) fn host_mounts(&self, places: &[String]) -> Result<Vec<Mount>> {
        places.iter().map(|place| self.host_mount(place)).collect()
    }

    fn host_mount(&self, place: &str) -> Result<Mount> {
        let listed = &self.settings.mounts;
        let mount = listed.iter().find(|mount| mount.at == place).ok_or_else(|| {
            let known: Vec<&str> = listed.iter().map(|mount| mount.at.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Diagnostic::new(
                "sandbox::no_mount",
                format!("tidemill.toml allows no mount at `{place}`; it allows {known}"),
            )
            .help(format!(
                "add {{ host = \"/path\", at = \"{place}\" }} to `mounts` under [sandbox] in tidemill.toml"
            ))
        })?;
        self.bind(mount)
    }

    fn bind(&self, mount: &HostMount) -> Result<Mount> {
        let shown = mount.host.display();
        let refused = |why: String| {
            Diagnostic::new(
                "sandbox::mount_refused",
                format!("{shown} cannot be mounted at {}: {why}", mount.at),
            )
            .help("`mounts` under [sandbox] in tidemill.toml names it; a folder of data is what it is for")
        };
        // The path may be a link, and the link may have changed since the settings were read.
        let real = std::fs::canonicalize(&mount.host).map_err(|error| refused(error.to_string()))?;
        allowed(&real).map_err(refused)?;
        let root = std::fs::canonicalize(&self.root).unwrap_or_else(|_| self.root.clone());
        if root.join(".tidemill").starts_with(&real) {
            return Err(refused("the project's own state lies in it".to_owned()));
        }
        if !real.is_dir() && !real.is_file() {
            return Err(refused("it is neither a folder nor a file".to_owned()));
        }
        let source = real.to_str().ok_or_else(|| refused("its name is not plain text".to_owned()))?;
        Ok(Mount {
            target: Some(mount.at.clone()),
            source: Some(source.to_owned()),
            typ: Some(MountType::BIND),
            read_only: Some(mount.access == Access::ReadOnly),
            bind_options: Some(MountBindOptions {
                // What is mounted below it on the host would not be read-only.
                non_recursive: Some(true),
                propagation: Some(MountBindOptionsPropagationEnum::RPRIVATE),
                ..MountBindOptions::default()
            }),
            ..Mount::default()
        })
    }
}
