//! Where a project stands: who watches it, what is in work, what waits.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::diagnostic::Result;
use crate::event::id::RunId;
use crate::event::state::RunState;
use crate::run::intake::Holder;
use crate::store::{Paused, Store};

/// Where a project stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Who watches it.
    pub daemon: Option<Watcher>,
    /// Runs that somebody carries out, oldest first.
    pub in_work: Vec<InWork>,
    /// Runs that wait for a worker.
    pub waiting: u64,
    /// What does not begin because somebody said so.
    pub paused: Paused,
}

/// A process that watches a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watcher {
    /// Its process id.
    pub pid: u32,
    /// Since when.
    pub since: Timestamp,
}

/// A run in work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InWork {
    /// Its id.
    pub run: RunId,
    /// Its workflow.
    pub workflow: String,
    /// Where it stands.
    pub state: RunState,
}

/// Reads it from the store; `holder` is who watches the project.
pub async fn status(store: &Store, holder: Option<&Holder>) -> Result<Status> {
    let rows = store.in_work().await?.into_iter();
    Ok(Status {
        daemon: holder.map(|holder| Watcher { pid: holder.owner.pid(), since: holder.since }),
        in_work: rows.map(|row| InWork { run: row.id, workflow: row.workflow, state: row.state }).collect(),
        waiting: store.count_waiting().await?,
        paused: store.paused().await?,
    })
}
