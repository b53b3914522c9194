//! Taking the declared outputs out of the sandbox and checking them.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::agent::Journal as _;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::What;
use crate::event::finding::Finding;
use crate::expect;
use crate::run::folder::RunFolder;
use crate::run::journal::Journal;
use crate::sandbox::{Caps, Collected, Sandbox};
use crate::script::Loaded;
use crate::workflow::path::WorkspacePath;
use crate::workflow::view::{Artifact, RunView};

/// What an attempt brought.
#[derive(Debug)]
pub struct Checked {
    /// The declared outputs that could be taken out.
    pub artifacts: Vec<Artifact>,
    /// Everything found wrong; empty means they passed.
    pub findings: Vec<Finding>,
}

/// Takes the declared outputs out of the sandbox.
pub async fn collect(
    loaded: &Loaded,
    sandbox: &dyn Sandbox,
    folder: &RunFolder,
    attempt: u32,
    journal: &Journal,
) -> Result<Collected> {
    let paths: Vec<WorkspacePath> =
        loaded.workflow.outputs.iter().map(|output| output.path.clone()).collect();
    let into = folder.artifacts(attempt);
    folder.forget_artifacts(attempt);
    RunFolder::make(&into)?;
    let collected = sandbox.collect(&paths, &Caps::default(), &into).await;
    let collected = collected.map_err(|error| error.during("take the outputs out"))?;
    for artifact in &collected.artifacts {
        let path = artifact.path.to_string();
        journal
            .append(What::ArtifactCollected { path, size: artifact.size, digest: artifact.digest.clone() })
            .await?;
    }
    Ok(collected)
}

/// Takes the outputs out and checks them: each file, then across files. `validate` only sees files that are good.
pub async fn check(
    loaded: &Loaded,
    sandbox: &dyn Sandbox,
    run: &RunView,
    folder: &RunFolder,
    journal: &Journal,
) -> Result<Checked> {
    let collected = collect(loaded, sandbox, folder, run.attempt, journal).await?;
    let outputs = loaded.workflow.outputs.clone();
    let taken = Arc::new(collected);
    let shared = taken.clone();
    let checking =
        tokio::task::spawn_blocking(move || expect::check_all(&outputs, &shared.artifacts, &shared.refused));
    let mut findings = checking.await.map_err(|error| {
        Diagnostic::new("expect::crashed", format!("a check ended unexpectedly: {error}"))
            .help("this is a fault of Tidemill; the files are kept, please report it")
    })?;
    let artifacts = taken.artifacts.clone();
    if findings.is_empty()
        && let Some(hook) = loaded.workflow.validate
    {
        findings = loaded.script.validate(hook).validate(&artifacts, run).await?;
    }
    journal.append(What::ChecksEnded { attempt: run.attempt, findings: findings.clone() }).await?;
    Ok(Checked { artifacts, findings })
}

/// What the agent is told about findings.
pub fn repair_message(findings: &[Finding]) -> String {
    /// More would only repeat itself.
    const TOLD: usize = 40;
    let mut message = "The files you saved do not pass their checks:\n".to_owned();
    for finding in findings.iter().take(TOLD) {
        let _ = writeln!(message, "- {finding}");
    }
    if findings.len() > TOLD {
        let _ = writeln!(message, "- and {} more", findings.len() - TOLD);
    }
    message.push_str("Mend the files, check them yourself, and say when you are done.");
    message
}
