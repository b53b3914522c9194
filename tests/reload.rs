//! Scripts that are edited while they are watched.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod alone;
mod daemon;
mod listing;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidemill::diagnostic::Report;
use tidemill::run::engines::Engines;
use tidemill::run::intake::notice::{Notice, Swap, Tell};
use tidemill::run::reload::Reload;
use tidemill::run::reload::in_force::InForce;
use tidemill::run::watching;
use tidemill::store::Store;
use tokio::sync::mpsc;

use crate::support::clock::ManualClock;
use crate::support::project::Project;

const MODELS: &str = "[models.actor]\nprovider = \"scripted\"\nscript = \"models/actor.lua\"\n";

/// A workflow that needs no container. `fields` ends in a comma or is empty.
fn script(name: &str, fields: &str) -> String {
    format!(
        "local mill = require \"tidemill\"\nreturn mill.workflow {{\n  name = \"{name}\", sandbox = \"none\",\n  \
         agent = {{ model = \"actor\" }}, {fields}\n  prompt = \"Count.\",\n}}\n"
    )
}

/// A project with models.
fn project() -> Project {
    Project::new().config(MODELS)
}

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), what).await.unwrap()
}

/// A reload at work, in a time that only the test moves.
struct Reloading {
    store: Store,
    clock: Arc<ManualClock>,
    in_force: InForce,
    notices: mpsc::UnboundedReceiver<Notice>,
    shown: Arc<Mutex<Vec<Report>>>,
    task: tokio::task::JoinHandle<()>,
}

/// A reload of what is in force, and what it shows.
fn reload(
    project: &Project,
    store: &Store,
    clock: &Arc<ManualClock>,
    in_force: InForce,
    tell: Tell,
) -> (Reload, Arc<Mutex<Vec<Report>>>) {
    let opened = project.open();
    let shown = Arc::new(Mutex::new(Vec::new()));
    let ear = Arc::clone(&shown);
    let reload = Reload {
        engines: Engines::new(&opened, |warning| panic!("{warning:?}")),
        project: opened,
        store: store.clone(),
        clock: clock.clone(),
        in_force,
        model: None,
        env: Arc::new(|name| (name == "KNOWN").then(|| "0123456789abcdef".to_owned())),
        tell,
        show: Arc::new(move |diagnostic| ear.lock().unwrap().push(diagnostic.report())),
    };
    (reload, shown)
}

/// Opens one of the scripts as they are.
async fn open(project: &Project) -> Reloading {
    let clock = Arc::new(ManualClock::new());
    let opened = project.open();
    let store = Store::open_with(&opened.state(), clock.clone()).await.unwrap();
    let in_force = InForce::new(watching::routes(&opened, &store, None).await.unwrap());
    let (say, notices) = mpsc::unbounded_channel();
    let tell = Tell::to(move |notice| drop(say.send(notice)));
    let (reload, shown) = reload(project, &store, &clock, in_force.clone(), tell);
    let task = tokio::spawn(async move { reload.work().await });
    let reloading = Reloading { store, clock, in_force, notices, shown, task };
    reloading.idle().await;
    reloading
}

impl Reloading {
    /// Until it waits for time to pass.
    async fn idle(&self) {
        soon(async {
            loop {
                // One who was woken goes to work before it is counted.
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                }
                if self.clock.sleepers() > 0 {
                    return;
                }
                std::thread::yield_now();
            }
        })
        .await;
    }

    /// So much time passes, and what is to be done then is done.
    async fn pass(&self, millis: u64) {
        self.clock.advance(Duration::from_millis(millis));
        self.idle().await;
    }

    /// An edit is noticed and settles.
    async fn settle(&self) {
        self.pass(1000).await;
        self.pass(300).await;
    }

    /// What was told since this was last asked.
    fn told(&mut self) -> Vec<String> {
        let mut told = Vec::new();
        while let Ok(notice) = self.notices.try_recv() {
            told.push(match notice {
                Notice::Reloaded { workflow, how: Swap::New(_) } => format!("{workflow} new"),
                Notice::Reloaded { workflow, how: Swap::Changed(_) } => format!("{workflow} changed"),
                Notice::Reloaded { workflow, how: Swap::Removed } => format!("{workflow} removed"),
                Notice::Warned(report) => report.code,
                other => format!("{other:?}"),
            });
        }
        told
    }

    /// The codes that were shown since this was last asked.
    fn shown(&self) -> Vec<String> {
        self.shown.lock().unwrap().drain(..).map(|report| report.code).collect()
    }

    /// Workflows in force.
    fn names(&self) -> Vec<String> {
        self.in_force.routes().iter().map(|route| route.workflow.clone()).collect()
    }
}

impl Drop for Reloading {
    fn drop(&mut self) {
        self.task.abort();
    }
}
