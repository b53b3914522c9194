//! Sandboxes without Docker: the machine's own system, read-only, behind bubblewrap's namespaces.
//!
//! Weaker than a container, and it says so: system calls are not filtered, and what limits memory and processes
//! depends on what the machine lets this process do.

mod limits;
mod place;
mod sandbox;
mod system;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::process::Command;

use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::RunId;
use crate::sandbox::local::sandbox::Local;
use crate::sandbox::owner::{Life, Owner};
use crate::sandbox::{Engine, Progress, ReadyImage, Sandbox, Spec};
use crate::workflow::image::Image;

/// The program that makes the namespaces.
const PROGRAM: &str = "bwrap";
/// The oldest version with everything that is asked of it.
const OLDEST: (u32, u32) = (0, 8);
/// The file in a sandbox's folder that says whose it is.
const OWNER: &str = "owner";

/// Bubblewrap on this machine.
pub struct Bubblewrap {
    /// Where sandboxes keep what they need on the host.
    folder: PathBuf,
    version: String,
    owner: Owner,
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
        Ok(Self { folder: state.join("local"), version, owner: Owner::this_process()? })
    }

    /// A folder of its own for one sandbox, marked as this process's.
    fn folder_for(&self, run: &RunId) -> Result<PathBuf> {
        let folder = self.folder.join(format!("{run}-{:08x}", fastrand::u32(..)));
        let made =
            fs::create_dir_all(&folder).and_then(|()| fs::write(folder.join(OWNER), self.owner.to_string()));
        made.map_err(|error| {
            Diagnostic::new("sandbox::disk", format!("cannot make {}", folder.display()))
                .cause(error)
                .help("is the disk with the project full?")
        })?;
        Ok(folder)
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
        Ok(ReadyImage {
            reference: "local".to_owned(),
            digest: String::new(),
            substituted_base: None,
            fresh: false,
        })
    }

    async fn start(&self, run: &RunId, _: &ReadyImage, spec: &Spec) -> Result<Arc<dyn Sandbox>> {
        let folder = self.folder_for(run)?;
        Ok(Arc::new(Local::new(folder, &self.version, spec)))
    }

    /// Folders and control groups; the processes ended with their owner.
    async fn sweep(&self) -> Result<usize> {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return Ok(0);
        };
        let mut swept = 0;
        for folder in entries.flatten().map(|entry| entry.path()) {
            let owner = fs::read_to_string(folder.join(OWNER)).ok().and_then(|label| Owner::parse(&label));
            if owner.is_some_and(|owner| owner.life() == Life::Dead) {
                let cleared = limits::release(&folder) && place::clear(&folder).is_ok();
                swept += usize::from(cleared);
            }
        }
        Ok(swept)
    }
}

impl fmt::Debug for Bubblewrap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "bubblewrap {}", self.version)
    }
}
