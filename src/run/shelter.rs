//! A sandbox for a run: the one an earlier process left running, a new one with the workspace as it was kept, or a new
//! one with nothing but the manifest.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::agent::deadline::{Cut, Deadline};
use crate::agent::{Continuity, Journal as _};
use crate::diagnostic::{Diagnostic, Result};
use crate::event::What;
use crate::event::origin::Origin;
use crate::event::resumed::How;
use crate::run::checkpoint::tree::Tree;
use crate::run::conductor::{Conductor, Unfinished};
use crate::run::journal::Journal;
use crate::run::past::Past;
use crate::run::workspace::Filling;
use crate::sandbox::{Command, Engine, Placement, ReadyImage, Sandbox, SandboxError, Spec};
use crate::store::RunRow;
use crate::workflow::Workflow;
use crate::workflow::manifest::Access;
use crate::workflow::path::WorkspacePath;

/// Folders that are made at once, and how long that may take.
const FOLDERS: usize = 500;
const MAKING: Duration = Duration::from_secs(30);

/// A sandbox, and how it is this run's.
pub(super) struct Shelter {
    pub(super) sandbox: Arc<dyn Sandbox>,
    pub(super) how: How,
}

impl Shelter {
    /// Whether calls that began before can be followed in it.
    pub(super) fn continuity(&self) -> Continuity {
        match self.how {
            How::SameSandbox => Continuity::Same,
            How::Checkpoint { .. } | How::NewSandbox | How::NoSandbox => Continuity::New,
        }
    }
}

impl Conductor {
    /// The image of the run: the very one it began with, as long as the engine has it. Nothing when it was stopped.
    pub(super) async fn image(
        &self,
        engine: &dyn Engine,
        workflow: &Workflow,
        past: &Past,
        journal: &Journal,
        stop: &CancellationToken,
    ) -> Result<Option<ReadyImage>> {
        if let Some(image) = &past.image
            && engine.has(&image.digest).await?
        {
            return Ok(Some(image.clone()));
        }
        let image = tokio::select! {
            () = stop.cancelled() => return Ok(None),
            image = engine.prepare(&workflow.image, self.progress.as_ref()) => image?,
        };
        if past.image.as_ref().is_some_and(|before| before.digest != image.digest) {
            let message = format!("the image {} is another one than the run began with", image.reference);
            let warning = Diagnostic::new("run::other_image", message).warning().help(
                "the one it began with was removed from the engine; `tidemill gc` keeps those of runs that wait",
            );
            journal.append(What::Warned { report: warning.report() }).await?;
        }
        let what = What::ImageReady {
            reference: image.reference.clone(),
            digest: image.digest.clone(),
            substituted_base: image.substituted_base.clone(),
        };
        journal.append(what).await?;
        Ok(Some(image))
    }

    /// The sandbox that an earlier process left running, where there is one. What cannot be gone on with is removed.
    pub(super) async fn left_running(
        &self,
        engine: &dyn Engine,
        run: &RunRow,
        past: &Past,
        spec: &Spec,
        journal: &Journal,
    ) -> Result<Option<Shelter>> {
        if let Some(id) = &past.sandbox {
            match engine.reattach(&run.id, id, spec).await {
                Ok(Some(sandbox)) => return Ok(Some(Shelter { sandbox, how: How::SameSandbox })),
                Ok(None) => {}
                Err(diagnostic) => {
                    journal.append(What::Warned { report: diagnostic.warning().report() }).await?;
                }
            }
        }
        if let Err(diagnostic) = engine.release(&run.id).await {
            journal.append(What::Warned { report: diagnostic.warning().report() }).await?;
        }
        Ok(None)
    }

    /// Starts a new sandbox. One of a run that goes on later outlives this process.
    pub(super) async fn start(
        &self,
        engine: &dyn Engine,
        run: &RunRow,
        image: &ReadyImage,
        spec: &Spec,
        past: &Past,
    ) -> Result<Shelter> {
        let sandbox = engine.start(&run.id, image, spec).await?;
        if self.unfinished == Unfinished::Waits {
            sandbox.outlive(&run.id)?;
        }
        let how = match &past.checkpoint {
            Some((turn, _)) => How::Checkpoint { turn: *turn },
            None => How::NewSandbox,
        };
        Ok(Shelter { sandbox, how })
    }

    /// Fills a new sandbox. Gives what came in between when the time was over, or a stop came.
    pub(super) async fn fill(
        &self,
        sandbox: &dyn Sandbox,
        filling: Filling,
        past: &Past,
        deadline: &Deadline,
        journal: &Journal,
    ) -> Result<Option<Cut>> {
        let isolation = sandbox.isolation().clone();
        journal.append(What::SandboxStarted { container: sandbox.id().to_owned(), isolation }).await?;
        for origin in &filling.origins {
            if let Some(words) = difference(&past.origins, origin) {
                let warning = Diagnostic::new("run::other_files", words).warning().help(
                    "the sandbox was lost, and the manifest was read again; drop the input again for a run with the \
                     files of one moment",
                );
                journal.append(What::Warned { report: warning.report() }).await?;
            }
        }
        let tree = match &past.checkpoint {
            Some((_, tree)) => Some(Tree::read(&self.store, tree).await?),
            None => None,
        };
        let files = match &tree {
            Some(tree) => restored(filling.files, tree.placements(&self.store)?),
            None => filling.files,
        };
        let filling_up = async {
            let placed = sandbox.put(files).await?;
            make_folders(sandbox, tree.map(|tree| tree.folders).unwrap_or_default()).await?;
            Ok::<_, SandboxError>(placed)
        };
        let placed = match deadline.race(filling_up).await {
            Ok(placed) => placed.map_err(|error| error.during("fill the workspace"))?,
            Err(cut) => return Ok(Some(cut)),
        };
        let entries = filling.origins.into_iter().take(What::ENTRIES).collect();
        journal.append(What::WorkspaceFilled { files: placed.files, bytes: placed.bytes, entries }).await?;
        Ok(None)
    }
}

/// The read-only files of the manifest, and everything else as it was kept.
fn restored(manifest: Vec<Placement>, kept: Vec<Placement>) -> Vec<Placement> {
    let mut files: Vec<Placement> =
        manifest.into_iter().filter(|file| file.access == Access::ReadOnly).collect();
    let given: BTreeSet<WorkspacePath> = files.iter().map(|file| file.path.clone()).collect();
    files.extend(kept.into_iter().filter(|file| !given.contains(&file.path)));
    files
}

/// Makes folders in which nothing stands. Where no commands run, there are none.
async fn make_folders(sandbox: &dyn Sandbox, folders: Vec<String>) -> Result<(), SandboxError> {
    for some in folders.chunks(FOLDERS) {
        let words = ["mkdir", "-p", "--"].into_iter().map(str::to_owned);
        let argv = words.chain(some.iter().cloned()).collect();
        sandbox.exec(&Command { argv, timeout: MAKING }).await?;
    }
    Ok(())
}

/// What the manifest brings now and did not bring then.
fn difference(before: &[Origin], now: &Origin) -> Option<String> {
    let then = before.iter().find(|origin| origin.path == now.path)?;
    (then.sha256 != now.sha256)
        .then(|| format!("`{}` of the manifest is not what it was when the run began", now.path))
}
