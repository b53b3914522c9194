//! Sandboxes as hardened Docker containers, through bollard.

mod archive;
mod belongings;
mod collect;
mod connect;
mod container;
mod differences;
mod errors;
mod exec;
mod facts;
mod first;
mod gateway;
mod harden;
mod helper;
mod images;
mod isolation;
mod mounts;
mod place;
mod pool;
mod read;
mod state;
mod sweep;
mod traits;
mod watchdog;
mod weaknesses;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::sync::{Mutex, OnceCell, oneshot};
use tokio_util::task::TaskTracker;

use crate::config::{self, Build, Project, Registry};
use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::{Digest, RunId};
use crate::owner::Owner;
use crate::sandbox::docker::belongings::{Belongings, Leftovers};
use crate::sandbox::docker::pool::Pool;
use crate::sandbox::docker::traits::Traits;
use crate::sandbox::{Awaited, Engine, Progress, ReadyImage, Sandbox, Spec};
use crate::workflow::image::Image;
use crate::workflow::network::Network;

pub use container::{INODES, TMP_BYTES};
pub use facts::Facts;
pub use helper::HELPER;
pub use images::{IMAGE_LABEL, Kept, Removed, Whose};

/// Every container, volume and network of ours carries this label, with the run's id.
pub const RUN_LABEL: &str = "tidemill.run";
/// The process that owns it.
pub const OWNER_LABEL: &str = "tidemill.owner";
/// A hash of the project's folder.
pub const PROJECT_LABEL: &str = "tidemill.project";
/// The project's state folder, which says whether a run will come back for it.
pub const STATE_LABEL: &str = "tidemill.state";
/// The volume with the helper; its value is the helper's hash.
pub const HELPER_LABEL: &str = "tidemill.helper";

/// A Docker engine.
#[derive(Clone)]
pub struct Docker {
    /// Where it is reached.
    host: String,
    client: bollard::Docker,
    /// The engine's version, e.g. `20.10.24`.
    version: String,
    /// Its machine's architecture, in Rust's words.
    architecture: String,
    root: PathBuf,
    build: Build,
    bases: BTreeMap<String, String>,
    registries: BTreeMap<String, Registry>,
    /// `[sandbox]` of the project.
    settings: config::Sandbox,
    owner: Owner,
    /// What kind of engine it is, once it was asked.
    traits: Arc<OnceCell<Traits>>,
    /// Removals of containers nobody waits for.
    removals: TaskTracker,
    /// What could not be removed, to be tried again.
    leftovers: Leftovers,
    /// The volume with the helper, once it was looked at.
    helper: Arc<Mutex<Option<String>>>,
    /// Containers that stand ready.
    pool: Arc<Pool>,
    /// The project's state folder, where runs go on after their process died.
    state: Option<PathBuf>,
}

impl Docker {
    /// Connects with all that a project's settings say of the engine.
    pub async fn open(project: &Project) -> Result<Self> {
        let config = &project.config;
        let engine = Self::connect(&project.root, &config.build, &config.bases).await?;
        Ok(Self {
            registries: config.registries.clone(),
            settings: config.sandbox.clone(),
            state: Some(project.state()),
            ..engine
        })
    }

    /// Connects to the engine (`DOCKER_HOST`, the current context, the usual sockets) and agrees on an API version.
    pub async fn connect(root: &Path, build: &Build, bases: &BTreeMap<String, String>) -> Result<Self> {
        Self::connect_to(connect::host(), root, build, bases).await
    }

    /// Connects to the engine at `host`, e.g. `unix:///var/run/docker.sock`.
    pub async fn connect_to(
        host: String,
        root: &Path,
        build: &Build,
        bases: &BTreeMap<String, String>,
    ) -> Result<Self> {
        let connect::Connected { host, client, version, architecture } = connect::connect(host).await?;
        Ok(Self {
            host,
            client,
            version,
            architecture,
            root: root.to_owned(),
            build: build.clone(),
            bases: bases.clone(),
            registries: BTreeMap::new(),
            settings: config::Sandbox::default(),
            owner: Owner::this_process()?,
            traits: Arc::default(),
            removals: TaskTracker::new(),
            leftovers: Leftovers::default(),
            helper: Arc::default(),
            pool: Arc::default(),
            state: None,
        })
    }

    /// Keeps containers ready from now on, as many as the project says: for a process that will start many. Without
    /// this, none stands ready.
    #[must_use]
    pub fn keep_warm(self) -> Self {
        let pool = Pool::new(self.settings.warm, self.settings.warm_total);
        Self { pool: Arc::new(pool), ..self }
    }

    /// Waits until containers that stand ready or were given up are removed, but no longer than `patience`: for the end
    /// of a process.
    pub async fn settle(&self, patience: Duration) {
        let settling = async {
            self.empty_pool().await;
            self.removals.close();
            self.removals.wait().await;
        };
        // What is not removed by then is found by the next sweep.
        let _ = tokio::time::timeout(patience, settling).await;
    }

    /// The engine's version.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// What tells this project's things from another's.
    fn project_hash(&self) -> String {
        Digest::of(self.root.as_os_str().as_encoded_bytes()).short().to_owned()
    }

    fn labels(&self, run: &str) -> std::collections::HashMap<String, String> {
        let state = self.state.as_ref().map(|state| (STATE_LABEL.to_owned(), state.display().to_string()));
        [
            (RUN_LABEL.to_owned(), run.to_owned()),
            (OWNER_LABEL.to_owned(), self.owner.to_string()),
            (PROJECT_LABEL.to_owned(), self.project_hash()),
        ]
        .into_iter()
        .chain(state)
        .collect()
    }

    /// Containers of this project that are awaited; nothing where none can be.
    fn awaited(&self) -> Option<Awaited> {
        self.state.as_deref().map(Awaited::new)
    }
}

#[async_trait]
impl Engine for Docker {
    async fn prepare(&self, image: &Image, progress: &dyn Progress) -> Result<ReadyImage> {
        self.while_it_answers("make the image ready", self.ready_image(image, progress)).await
    }

    async fn start(&self, run: &RunId, image: &ReadyImage, spec: &Spec) -> Result<Arc<dyn Sandbox>> {
        let (engine, run, image, spec) = (self.clone(), run.clone(), image.clone(), spec.clone());
        let (sender, receiver) = oneshot::channel();
        // On a task of its own: when the caller goes away half-way, what was made is known, and is removed as it drops.
        tokio::spawn(async move { sender.send(engine.ready_or_new(&run, &image, &spec).await) });
        match receiver.await {
            Ok(started) => Ok(Arc::new(started?)),
            Err(_) => Err(Diagnostic::new("sandbox::stopped", "the container's start was stopped")
                .help("this happens when Tidemill is shutting down; run it again")),
        }
    }

    async fn has(&self, digest: &str) -> Result<bool> {
        Ok(self.inspect(digest).await?.is_some())
    }

    async fn reattach(&self, run: &RunId, id: &str, spec: &Spec) -> Result<Option<Arc<dyn Sandbox>>> {
        if spec.network != Network::None {
            return Ok(None);
        }
        let attaching = Box::pin(self.attach_awaited(run, id, spec));
        self.while_it_answers("go on with the sandbox", attaching).await
    }

    async fn release(&self, run: &RunId) -> Result<()> {
        for (name, awaiting) in self.awaited().map_or(Ok(Vec::new()), |awaited| awaited.all())? {
            if awaiting == *run {
                let belongings = Belongings { container: name.clone(), volume: name, parts: None };
                self.discard(&belongings).await?;
            }
        }
        Ok(())
    }

    async fn sweep(&self) -> Result<usize> {
        self.remove_stale(Instant::now());
        let own = self.discard_leftovers().await;
        let others = self.while_it_answers("look for what dead processes left", self.sweep_dead()).await?;
        Ok(own + others)
    }
}

impl fmt::Debug for Docker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Docker {}", self.version)
    }
}
