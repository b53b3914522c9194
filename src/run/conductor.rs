//! Who carries a run out, from taking it up to its end. Its story up to the last check is told in `story`.

use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::agent::Journal as _;
use crate::artifact::{self, Destination, Receipt};
use crate::clock::{Clock, SystemClock};
use crate::config::Project;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::What;
use crate::event::finding::Finding;
use crate::event::state::RunState;
use crate::event::usage::Usage;
use crate::run::engines::Engines;
use crate::run::folder::RunFolder;
use crate::run::journal::Journal;
use crate::run::network;
use crate::run::outcome::Outcome;
use crate::run::queue::{Conduct, may_pass};
use crate::sandbox::Progress;
use crate::store::{Lease, RunRow, Store};
use crate::workflow::Workflow;
use crate::workflow::image::Origin;
use crate::workflow::notify::Notify;
use crate::workflow::view::Artifact;

/// Carries runs out.
#[derive(Clone)]
pub struct Conductor {
    /// Whose runs.
    pub project: Project,
    /// Where they are recorded.
    pub store: Store,
    /// What sandboxes are made with.
    pub engines: Engines,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Who is told what takes long.
    pub progress: Arc<dyn Progress>,
    /// What becomes of a run that could go on another time.
    pub unfinished: Unfinished,
}

/// What becomes of a run that is stopped, or fails by something that passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfinished {
    /// A person waits for it, or does not want it any more: it ends `cancelled` or `failed`.
    Ends,
    /// The queue keeps it: it is left as it is and goes on later.
    Waits,
}

#[async_trait]
impl Conduct for Conductor {
    async fn conduct(&self, run: &RunRow, stop: CancellationToken) -> Result<RunState> {
        let journal = Journal::of(&self.project, &self.store, run);
        let folder = RunFolder::new(&self.project.state(), &run.id);
        let (journal, outcome) = match self.load(run).await {
            Ok(loaded) => {
                let journal = journal.guarding(secrets(&loaded.workflow));
                let told = self.story(run, &loaded, &folder, &journal, &stop).await;
                (journal, told.unwrap_or_else(Outcome::Failed))
            }
            Err(diagnostic) => (journal, Outcome::Failed(diagnostic)),
        };
        match outcome {
            // It is another's now, and so are its files.
            Outcome::Failed(error) if error.code() == Lease::LOST => Err(error),
            Outcome::Stopped if self.unfinished == Unfinished::Waits => Ok(RunState::Running),
            Outcome::Failed(error) if self.unfinished == Unfinished::Waits && may_pass(&error) => {
                folder.tidy_until_later(run);
                Err(error)
            }
            outcome => self.end(run, outcome, &folder, &journal).await,
        }
    }
}

impl Conductor {
    /// For the runs of a project, by the machine's own clock.
    pub fn new(
        project: &Project,
        store: &Store,
        engines: Engines,
        progress: Arc<dyn Progress>,
        unfinished: Unfinished,
    ) -> Self {
        let (project, store, clock) = (project.clone(), store.clone(), Arc::new(SystemClock::new()));
        Self { project, store, engines, clock, progress, unfinished }
    }

    /// Publishes or puts aside, and ends the run.
    async fn end(
        &self,
        run: &RunRow,
        outcome: Outcome,
        folder: &RunFolder,
        journal: &Journal,
    ) -> Result<RunState> {
        let outcome = match outcome {
            Outcome::Passed(artifacts) => match self.publish(run, &artifacts, journal).await {
                Ok(()) => Outcome::Passed(artifacts),
                // It may be published already: what stands in the outbox decides that, not this.
                Err(diagnostic) if is_of_the_store(&diagnostic) => return Err(diagnostic),
                Err(diagnostic) => {
                    self.keep(&artifacts, &[], folder, journal).await?;
                    Outcome::Failed(diagnostic)
                }
            },
            other => other,
        };
        match &outcome {
            Outcome::Rejected { artifacts, findings } => {
                self.keep(artifacts, findings, folder, journal).await?;
            }
            Outcome::Exhausted { artifacts, .. } => {
                self.keep(artifacts, &[], folder, journal).await?;
            }
            _ => {}
        }
        let row = self.store.run(&run.id).await?;
        let (usage, cost) = row.map_or((Usage::default(), None), |row| (row.usage, row.cost));
        let state = outcome.state();
        journal.append(What::RunEnded { state, report: outcome.report(), usage, cost }).await?;
        folder.tidy_after(run);
        Ok(state)
    }

    async fn publish(&self, run: &RunRow, artifacts: &[Artifact], journal: &Journal) -> Result<()> {
        journal.enter(RunState::Publishing).await?;
        // A project's own outbox is made when it is missing; one elsewhere may be a share that is not mounted.
        if self.project.config.folders.outbox.is_relative() {
            RunFolder::make(&self.project.outbox())?;
        }
        let receipt = Receipt::fold(&self.store.all_events(&run.id).await?)?;
        let destination = Destination::of(self.project.outbox(), &run.workflow, &run.inputs, &run.id);
        let artifacts = artifacts.to_vec();
        let publishing =
            tokio::task::spawn_blocking(move || artifact::publish(&destination, &artifacts, &receipt));
        let published =
            publishing.await.map_err(|error| Diagnostic::new("artifact::publish", error.to_string()))??;
        journal.append(published.event(&self.project.root)).await
    }

    /// Keeps files of a run that publishes nothing. Why it ended matters more than that this fails.
    async fn keep(
        &self,
        artifacts: &[Artifact],
        findings: &[Finding],
        folder: &RunFolder,
        journal: &Journal,
    ) -> Result<()> {
        if artifacts.is_empty() && findings.is_empty() {
            return Ok(());
        }
        let (kept, artifacts, findings) = (folder.kept(), artifacts.to_vec(), findings.to_vec());
        let target = kept.clone();
        let keeping =
            tokio::task::spawn_blocking(move || artifact::keep_aside(&target, &artifacts, &findings));
        let done =
            keeping.await.unwrap_or_else(|error| Err(Diagnostic::new("artifact::keep", error.to_string())));
        let what = match done {
            Ok(()) => What::KeptAside { folder: self.relative(&kept) },
            Err(diagnostic) => What::Warned { report: diagnostic.report() },
        };
        journal.append(what).await
    }

    fn relative(&self, path: &std::path::Path) -> String {
        path.strip_prefix(&self.project.root).unwrap_or(path).display().to_string()
    }
}

/// Whether something could not be recorded, or was not ours to record any more.
fn is_of_the_store(diagnostic: &Diagnostic) -> bool {
    diagnostic.code().starts_with("store::")
}

/// The variables with all a workflow's secrets.
fn secrets(workflow: &Workflow) -> Vec<String> {
    let mut names = network::secrets(&workflow.network);
    names.extend(workflow.webhooks.iter().flat_map(|webhook| webhook.secrets.clone()));
    names.extend(workflow.notify.iter().flat_map(Notify::secrets));
    if let Origin::Folder(folder) = &workflow.image.origin {
        names.extend(folder.secrets.values().cloned());
    }
    names
}
