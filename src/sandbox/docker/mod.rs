//! Sandboxes as hardened Docker containers, through bollard.

mod archive;
mod bases;
mod build;
mod collect;
mod connect;
mod container;
mod context;
mod errors;
mod exec;
mod facts;
mod gateway;
mod images;
mod isolation;
mod output;
mod owner;
mod place;
mod read;
mod sweep;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use crate::config::Build;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::{Digest, RunId};
use crate::sandbox::docker::owner::Owner;
use crate::sandbox::{Engine, Progress, ReadyImage, Sandbox, Spec};
use crate::workflow::image::Image;

pub use facts::Facts;

/// Every container, volume and network of ours carries this label, with the run's id.
pub const RUN_LABEL: &str = "tidemill.run";
/// The process that owns it.
pub const OWNER_LABEL: &str = "tidemill.owner";
/// A hash of the project's folder.
pub const PROJECT_LABEL: &str = "tidemill.project";

/// A Docker engine.
#[derive(Clone)]
pub struct Docker {
    client: bollard::Docker,
    /// The engine's version, e.g. `20.10.24`.
    version: String,
    root: PathBuf,
    build: Build,
    bases: BTreeMap<String, String>,
    owner: Owner,
    /// Removals of containers nobody waits for.
    removals: TaskTracker,
}

impl Docker {
    /// Connects to the engine (`DOCKER_HOST`, the current context, the usual sockets) and agrees on an API version.
    pub async fn connect(root: &Path, build: &Build, bases: &BTreeMap<String, String>) -> Result<Self> {
        let (client, version) = connect::connect().await?;
        Ok(Self {
            client,
            version,
            root: root.to_owned(),
            build: build.clone(),
            bases: bases.clone(),
            owner: Owner::this_process()?,
            removals: TaskTracker::new(),
        })
    }

    /// Waits until containers that were given up are removed, but no longer than `patience`: for the end of a process.
    pub async fn settle(&self, patience: Duration) {
        self.removals.close();
        // What is not removed by then is found by the next sweep.
        let _ = tokio::time::timeout(patience, self.removals.wait()).await;
    }

    /// The engine's version.
    pub fn version(&self) -> &str {
        &self.version
    }

    fn labels(&self, run: &RunId) -> std::collections::HashMap<String, String> {
        let project = Digest::of(self.root.as_os_str().as_encoded_bytes()).short().to_owned();
        [
            (RUN_LABEL.to_owned(), run.to_string()),
            (OWNER_LABEL.to_owned(), self.owner.to_string()),
            (PROJECT_LABEL.to_owned(), project),
        ]
        .into()
    }
}

#[async_trait]
impl Engine for Docker {
    async fn prepare(&self, image: &Image, progress: &dyn Progress) -> Result<ReadyImage> {
        self.ready_image(image, progress).await
    }

    async fn start(&self, run: &RunId, image: &ReadyImage, spec: &Spec) -> Result<Arc<dyn Sandbox>> {
        let (engine, run, image, spec) = (self.clone(), run.clone(), image.clone(), spec.clone());
        let (sender, receiver) = oneshot::channel();
        // On a task of its own: when the caller goes away half-way, what was made is known, and is removed as it drops.
        tokio::spawn(async move { sender.send(engine.start_container(&run, &image, &spec).await) });
        match receiver.await {
            Ok(started) => Ok(Arc::new(started?)),
            Err(_) => Err(Diagnostic::new("sandbox::stopped", "the container's start was stopped")
                .help("this happens when Tidemill is shutting down; run it again")),
        }
    }

    async fn sweep(&self) -> Result<usize> {
        self.sweep_dead().await
    }
}

impl fmt::Debug for Docker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Docker {}", self.version)
    }
}
