//! Sandboxes without Docker: the machine's own system, read-only, behind bubblewrap's namespaces.
//!
//! Weaker than a container, and it says so: system calls are not filtered, and what limits memory and processes
//! depends on what the machine lets this process do.

mod limits;
mod place;
mod sandbox;
mod system;

use std::fmt;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::process::Command;

use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::RunId;
use crate::sandbox::folders::Folders;
use crate::sandbox::local::sandbox::Local;
use crate::sandbox::{Engine, Progress, ReadyImage, Sandbox, Spec};
use crate::workflow::image::Image;
use crate::workflow::network::Network;

pub use system::shown;

/// The program that makes the namespaces.
const PROGRAM: &str = "bwrap";
/// The oldest version with everything that is asked of it.
const OLDEST: (u32, u32) = (0, 8);

/// Bubblewrap on this machine.
pub struct Bubblewrap {
    /// Where sandboxes keep what they need on the host.
    folders: Folders,
    version: String,
}

impl Bubblewrap {
    /// Looks for bubblewrap; sandboxes keep their folders under `state`.
    pub async fn open(state: &Path) -> Result<Self> {
        let asked = Command::new(PROGRAM).arg("--version").stdin(Stdio::null()).output().await;
        let said = asked.map_err(|error| {
            Diagnostic::new("sandbox::no_bubblewrap", format!("`{PROGRAM}` cannot be run: {error}")).help(
                "the local sandbox needs bubblewrap: `apt install bubblewrap`, or use `sandbox = \"docker\"`",
            )
        })?;
        let said = String::from_utf8_lossy(&said.stdout);
        let version = said.split_whitespace().last().unwrap_or_default().to_owned();
        if parse(&version).is_none_or(|version| version < OLDEST) {
            let (major, minor) = OLDEST;
            let message =
                format!("bubblewrap is version {version:?}, and {major}.{minor} or newer is needed");
            return Err(Diagnostic::new("sandbox::old_bubblewrap", message).help("install a newer one"));
        }
        Ok(Self { folders: Folders::new(state.join("local"))?, version })
    }
}

fn parse(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

#[async_trait]
impl Engine for Bubblewrap {
    /// There is no image: commands see the machine's own programs.
    async fn prepare(&self, _: &Image, _: &dyn Progress) -> Result<ReadyImage> {
        Ok(ReadyImage::none("local"))
    }

    async fn start(&self, run: &RunId, _: &ReadyImage, spec: &Spec) -> Result<Arc<dyn Sandbox>> {
        if spec.network != Network::None || !spec.mounts.is_empty() {
            let message = "a local sandbox has neither a network nor mounts of the host";
            return Err(Diagnostic::new("sandbox::local", message)
                .help("use `sandbox = \"docker\"`, or take them out"));
        }
        let folder = self.folders.make(run)?;
        Ok(Arc::new(Local::new(folder, &self.version, spec)))
    }

    /// Folders and control groups; the processes ended with their owner.
    async fn sweep(&self) -> Result<usize> {
        Ok(self.folders.sweep(|folder| limits::release(folder) && place::clear(folder).is_ok()))
    }
}

impl fmt::Debug for Bubblewrap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "bubblewrap {}", self.version)
    }
}
