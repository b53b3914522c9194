//! What sandboxes are made with, each opened when the first run needs it: a project whose workflows all run locally
//! needs no Docker.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::OnceCell;

use crate::config::Project;
use crate::diagnostic::{Diagnostic, Result};
use crate::sandbox::docker::Docker;
use crate::sandbox::local::Bubblewrap;
use crate::sandbox::none::NoSandbox;
use crate::sandbox::{Engine, sweep_scratch};
use crate::workflow::sandbox::Kind;

/// Who is told that something went wrong which is no reason not to work.
type Warn = Arc<dyn Fn(&Diagnostic) + Send + Sync>;

/// The engines of one project.
#[derive(Clone)]
pub struct Engines {
    shared: Arc<Shared>,
}

struct Shared {
    project: Project,
    warn: Warn,
    /// Whether there will be another run after this one.
    keeps_warm: AtomicBool,
    docker: OnceCell<Docker>,
    local: OnceCell<Arc<Bubblewrap>>,
    none: OnceCell<Arc<NoSandbox>>,
}

impl Engines {
    /// None is open yet. `warn` is told when what dead processes left cannot be removed.
    pub fn new(project: &Project, warn: impl Fn(&Diagnostic) + Send + Sync + 'static) -> Self {
        let shared = Shared {
            project: project.clone(),
            warn: Arc::new(warn),
            keeps_warm: AtomicBool::new(false),
            docker: OnceCell::new(),
            local: OnceCell::new(),
            none: OnceCell::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// From now on sandboxes stand ready for runs to come, as many as the project says: for a daemon.
    pub fn keep_warm(&self) {
        self.shared.keeps_warm.store(true, Ordering::Release);
    }

    /// The engine for a kind of sandbox. The first time it is opened, and what dead processes left is removed.
    pub async fn get(&self, kind: Kind) -> Result<Arc<dyn Engine>> {
        let Shared { project, docker, local, none, .. } = &*self.shared;
        Ok(match kind {
            Kind::Docker => {
                let open = async || {
                    let engine = Docker::open(project).await?;
                    self.clear(&engine).await;
                    let warm = self.shared.keeps_warm.load(Ordering::Acquire);
                    Ok::<_, Diagnostic>(if warm { engine.keep_warm() } else { engine })
                };
                Arc::new(docker.get_or_try_init(open).await?.clone())
            }
            Kind::Local => {
                let open = async || {
                    let engine = Bubblewrap::open(&project.state()).await?;
                    self.clear(&engine).await;
                    Ok::<_, Diagnostic>(Arc::new(engine))
                };
                local.get_or_try_init(open).await?.clone()
            }
            Kind::None => {
                let open = async || {
                    let engine = NoSandbox::open(&project.state())?;
                    self.clear(&engine).await;
                    Ok::<_, Diagnostic>(Arc::new(engine))
                };
                none.get_or_try_init(open).await?.clone()
            }
        })
    }

    async fn clear(&self, engine: &dyn Engine) {
        if let Err(diagnostic) = engine.sweep().await {
            (self.shared.warn)(&diagnostic.warning());
        }
        sweep_scratch();
    }

    /// Those that are open.
    pub fn opened(&self) -> Vec<Arc<dyn Engine>> {
        let Shared { docker, local, none, .. } = &*self.shared;
        let docker = docker.get().map(|engine| Arc::new(engine.clone()) as Arc<dyn Engine>);
        let local = local.get().map(|engine| engine.clone() as Arc<dyn Engine>);
        let none = none.get().map(|engine| engine.clone() as Arc<dyn Engine>);
        docker.into_iter().chain(local).chain(none).collect()
    }

    /// Waits until sandboxes that were given up are removed, but no longer than `patience`: for the end of a process.
    pub async fn settle(&self, patience: Duration) {
        if let Some(docker) = self.shared.docker.get() {
            docker.settle(patience).await;
        }
    }
}

impl fmt::Debug for Engines {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Engines")
    }
}
