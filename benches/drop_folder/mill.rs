//! A project with one workflow, watched by a daemon whose runs do nothing.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use tempfile::TempDir;
use tidemill::clock::SystemClock;
use tidemill::config::Project;
use tidemill::diagnostic::Result;
use tidemill::event::input::RawPath;
use tidemill::event::state::RunState;
use tidemill::run::intake::notice::{Notice, Tell};
use tidemill::run::intake::stop::Stop;
use tidemill::run::intake::{Daemon, WorkflowRoute};
use tidemill::run::queue::Conduct;
use tidemill::run::watching;
use tidemill::store::{RunRow, Store};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const MODELS: &str = "[models.nobody]\nprovider = \"scripted\"\nscript = \"models/nobody.lua\"\n";
const NOBODY: &str = "local test = require \"tidemill.test\"\nreturn test.script {}\n";
const WORKFLOW: &str = r#"local mill = require "tidemill"
return mill.workflow {
  name = "idle",
  sandbox = "none",
  triggers = { mill.drop { glob = "**/*.csv" } },
  agent = { model = "nobody", instructions = "Nothing." },
  prompt = "Nothing.",
}
"#;

/// The project.
pub struct Mill {
    folder: TempDir,
    pub project: Project,
    pub store: Store,
}

/// A daemon at work.
pub struct Watching {
    /// Files that were taken and whose runs are queued, and when that was said.
    pub claimed: mpsc::UnboundedReceiver<(RawPath, Instant)>,
    stop: Stop,
    task: JoinHandle<Result<()>>,
}

/// Does nothing until it is told to stop.
struct Idle;

#[async_trait]
impl Conduct for Idle {
    async fn conduct(&self, _run: &RunRow, stop: CancellationToken) -> Result<RunState> {
        stop.cancelled().await;
        Ok(RunState::Running)
    }
}

impl Mill {
    /// Files are complete after `settle`.
    pub async fn new(settle: &str) -> Self {
        let folder = TempDir::with_prefix("tidemill-bench-").expect("a folder");
        for name in ["workflows", "models", "inbox", "aside"] {
            fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        let config = format!("[watch]\nsettle = \"{settle}\"\n\n{MODELS}");
        for (path, text) in [
            ("tidemill.toml", config.as_str()),
            ("models/nobody.lua", NOBODY),
            ("workflows/idle.lua", WORKFLOW),
        ] {
            fs::write(folder.path().join(path), text).expect("a file");
        }
        let project = Project::open(folder.path()).expect("a project");
        let store = Store::open(&project.state()).await.expect("a store");
        Self { folder, project, store }
    }

    /// A path in the project.
    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// The routes of its workflow.
    pub async fn routes(&self) -> Vec<WorkflowRoute> {
        watching::routes(&self.project, &self.store, None).await.expect("a workflow")
    }

    /// Begins to watch.
    pub async fn watch(&self) -> Watching {
        let (say, claimed) = mpsc::unbounded_channel();
        let tell = Tell::to(move |notice| {
            if let Notice::Claimed { path, .. } = notice {
                let _ = say.send((path, Instant::now()));
            }
        });
        let lock = Daemon::lock(&self.project).expect("the only one");
        let (store, clock) = (self.store.clone(), Arc::new(SystemClock::new()));
        let routes = self.routes().await;
        let daemon = Daemon::open(lock, &self.project, store, clock, routes, Arc::new(Idle), tell);
        let daemon = daemon.await.expect("a daemon");
        let stop = Stop::new();
        let task = tokio::spawn(daemon.run(stop.clone()));
        Watching { claimed, stop, task }
    }
}

impl Watching {
    /// Ends the watching.
    pub async fn end(self) {
        self.stop.interrupt();
        self.task.await.expect("a task").expect("a daemon that ends");
    }
}
