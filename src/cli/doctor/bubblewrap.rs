//! Bubblewrap: only workflows with a local sandbox need it.

use std::path::Path;

use crate::cli::doctor::finding::Finding;
use crate::sandbox::local::Bubblewrap;
use crate::workflow::Workflow;
use crate::workflow::sandbox::Kind;

/// Its version, where a workflow needs it.
pub(super) async fn examine(state: &Path, workflows: &[Workflow]) -> Option<Finding> {
    workflows.iter().find(|workflow| workflow.sandbox == Kind::Local)?;
    Some(match Bubblewrap::open(state).await {
        Ok(bubblewrap) => Finding::ok("local sandbox", format!("{bubblewrap:?}")),
        Err(diagnostic) => Finding::of("local sandbox", &diagnostic),
    })
}
