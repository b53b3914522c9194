//! The program `git`: only workflows with a `mill.git` need it.

use tokio::process::Command;

use crate::cli::doctor::finding::Finding;
use crate::workflow::Workflow;
use crate::workflow::manifest::Content;

/// Its version, where a workflow needs it.
pub(super) async fn examine(workflows: &[Workflow]) -> Option<Finding> {
    let needs = |workflow: &&Workflow| {
        workflow.manifest.entries().iter().any(|entry| matches!(entry.content, Content::Git(_)))
    };
    let workflow = workflows.iter().find(needs)?;
    let asked = Command::new("git").arg("--version").output().await;
    Some(match asked {
        Ok(output) if output.status.success() => {
            let version = String::from_utf8_lossy(&output.stdout);
            Finding::ok("git", version.trim().trim_start_matches("git version "))
        }
        _ => Finding::fail(
            "git",
            format!("it cannot be started, and the workflow {} needs it", workflow.name),
            "install git: repositories are cloned on this machine, not in the sandbox",
        ),
    })
}
