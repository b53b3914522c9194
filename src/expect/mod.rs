//! What a good artifact is: checks after the agent is done.

use std::fmt;

use async_trait::async_trait;

use crate::diagnostic::Result;
use crate::event::finding::Finding;
use crate::workflow::view::{Artifact, RunView};

/// A check across files that only the script knows; implemented by `script`.
#[async_trait]
pub trait Validate: Send + Sync + fmt::Debug {
    /// Everything it finds wrong. An error is a mistake of the script and ends the run.
    async fn validate(&self, artifacts: &[Artifact], run: &RunView) -> Result<Vec<Finding>>;
}
