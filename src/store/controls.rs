//! What people ask of the queue as a whole. It is written down, so that it holds for the next process as well.

use std::collections::BTreeSet;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::diagnostic::Result;
use crate::owner::Owner;

/// Which runs do not begin because somebody said so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paused {
    /// None does.
    pub all: bool,
    /// Those of these workflows do not.
    pub workflows: BTreeSet<String>,
}

impl Paused {
    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        !self.all && self.workflows.is_empty()
    }

    /// Whether runs of this workflow do not begin.
    pub fn holds(&self, workflow: &str) -> bool {
        self.all || self.workflows.contains(workflow)
    }
}

/// What people ask of the queue.
#[async_trait]
pub trait Controls: Send + Sync {
    /// Lets no run begin from now on: none of `workflow`, or none at all.
    async fn pause(&self, workflow: Option<&str>) -> Result<()>;

    /// Lets runs begin again: those of `workflow`, or all, whatever was paused. Gives whether anything was.
    async fn resume(&self, workflow: Option<&str>) -> Result<bool>;

    /// What is paused.
    async fn paused(&self) -> Result<Paused>;

    /// Has a process end when its runs have.
    async fn drain(&self, holder: &str) -> Result<()>;

    /// Whether this process is to end when its runs have.
    async fn is_to_drain(&self, holder: &Owner) -> Result<bool>;

    /// Forgets what processes were asked that are gone.
    async fn forget_drains(&self) -> Result<()>;
}
