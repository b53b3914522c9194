//! The drop folder: every file that is dropped becomes its runs exactly once, and stands somewhere afterwards.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod batch;
mod cases;
mod claim;
mod company;
mod crash;
mod daemon;
mod dedupe;
mod explain;
mod eyes;
mod half_way;
mod harness;
mod links;
mod notify;
mod notify_facts;
mod options;
mod put_away;

use std::sync::Arc;
use std::time::Duration;

use tidemill::event::id::Digest;
use tidemill::event::input::RawPath;
use tidemill::event::state::InputState;
use tidemill::run::intake::WorkflowRoute;
use tidemill::run::intake::desk::Desk;
use tidemill::run::intake::notice::Tell;
use tidemill::store::{RunFilter, RunRow, Store};
use tidemill::trigger::drop_folder::scan::{Alone, Scan, scan};
use tidemill::trigger::drop_folder::scope::Scope;
use tidemill::workflow::trigger::Drop;

use crate::support::clock::ManualClock;
use crate::support::project::Project;

/// What `watch.settle` is when `tidemill.toml` does not say.
const SETTLE: Duration = Duration::from_secs(2);

/// A project, its desk, and a clock that stands still.
struct Inbox {
    project: Project,
    store: Store,
    clock: Arc<ManualClock>,
    desk: Desk,
}

fn route(workflow: &str, glob: &str) -> WorkflowRoute {
    WorkflowRoute {
        workflow: workflow.to_owned(),
        schedules: Vec::new(),
        webhooks: Vec::new(),
        drops: vec![Drop::new(glob)],
        model: "analyst".to_owned(),
        bundle: Digest::of("script"),
        sandbox: tidemill::workflow::sandbox::Kind::Docker,
        queueing: tidemill::workflow::queueing::Queueing::default(),
    }
}

impl Inbox {
    async fn with(project: Project, routes: &[(&str, &str)]) -> Self {
        let routes = routes.iter().map(|(workflow, glob)| route(workflow, glob)).collect();
        Self::open(project, routes).await
    }

    /// For one workflow with that drop.
    async fn dropping(project: Project, drop: Drop) -> Self {
        let route = WorkflowRoute { drops: vec![drop], ..route("energy", "") };
        Self::open(project, vec![route]).await
    }

    async fn open(project: Project, routes: Vec<WorkflowRoute>) -> Self {
        let clock = Arc::new(ManualClock::new());
        let opened = project.open();
        let store = Store::open_with(&opened.state(), clock.clone()).await.unwrap();
        let desk = Desk::open(&opened, store.clone(), clock.clone(), routes, Tell::default()).await.unwrap();
        Self { project, store, clock, desk }
    }

    /// For one workflow that takes everything, in all folders.
    async fn new() -> Self {
        Self::with(Project::new(), &[("energy", "**/*")]).await
    }

    fn look(&self) -> Scan {
        scan(&self.project.path("inbox"), Scope::All, &mut Alone)
    }

    async fn tick(&mut self) -> usize {
        let scan = self.look();
        self.desk.tick(&scan).await.unwrap()
    }

    async fn after(&mut self, time: Duration) -> usize {
        self.clock.advance(time);
        self.tick().await
    }

    /// Looks, waits long enough, and looks again: gives how many runs that brought.
    async fn settle(&mut self) -> usize {
        self.tick().await + self.after(SETTLE).await
    }

    async fn runs(&self) -> Vec<RunRow> {
        self.store.runs(&RunFilter::default()).await.unwrap()
    }

    /// The state of the newest file with that path, and why.
    async fn standing(&self, path: &str) -> (InputState, String) {
        let history = self.store.history(&RawPath::new(path)).await.unwrap();
        let (row, _) = history.last().unwrap_or_else(|| panic!("the ledger does not know {path}"));
        (row.state, row.reason.clone().unwrap_or_default())
    }
}
