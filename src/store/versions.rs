//! Which version of each workflow is in force, and since when.

use async_trait::async_trait;
use jiff::Timestamp;
use serde::Serialize;

use crate::diagnostic::{Report, Result};
use crate::event::id::Digest;

/// The version of a workflow that new runs are made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Version {
    /// The workflow's name.
    pub workflow: String,
    /// The bundle of scripts: a blob of the store.
    pub bundle: Digest,
    /// When it was first put in force.
    pub since: Timestamp,
    /// Why the script as it stands is not in force.
    pub broken: Option<Report>,
}

/// Versions of workflows.
#[async_trait]
pub trait Versions: Send + Sync {
    /// Makes these the versions in force. One that was before keeps its `since`; others are forgotten.
    async fn know_versions(&self, versions: &[Version]) -> Result<()>;

    /// The versions in force, or those that were when the project was last watched; by name.
    async fn versions(&self) -> Result<Vec<Version>>;
}
