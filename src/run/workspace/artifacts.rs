//! What another workflow published, checked against its run's log: the outbox is open to others.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::artifact::{Content, Receipt};
use crate::config::Project;
use crate::diagnostic::{Diagnostic, Result, nearest};
use crate::event::state::RunState;
use crate::run::workspace::cache::Cache;
use crate::run::workspace::found::{Found, Part, Parts};
use crate::sandbox::Body;
use crate::store::{RunFilter, RunRow, Store};
use crate::workflow::manifest::{Entry, Handover, Which};

/// What all artifacts of a run share is left out of their paths, in the outbox as in a workspace.
const COMMON: &str = "output/";

/// The artifacts of a handover.
pub(super) async fn find(
    handover: &Handover,
    entry: &Entry,
    project: &Project,
    store: &Store,
    cache: &Cache,
) -> Result<Found> {
    let from = Some(handover.workflow.clone());
    let Some(run) = row(handover, store).await? else {
        if handover.optional {
            return Ok(Found { from, ..Found::default() });
        }
        return Err(none(handover, entry, store).await?);
    };
    // From the log, not from the receipt: that lies in the outbox with the files it speaks of.
    let artifacts = Receipt::fold(&store.all_events(&run.id).await?)?.artifacts;
    let folder = project.root.join(run.published.as_deref().unwrap_or_default());
    let place = standing(&artifacts);
    let wanted = wanted(handover, &run, artifacts)?;
    let (cache, id) = (cache.clone(), run.id.clone());
    let reading = tokio::task::spawn_blocking(move || {
        let part = |artifact: &Content| {
            let name = short(artifact, place).to_owned();
            let body = Body::File(keep(&folder.join(&name), artifact, &run, &cache)?);
            // What came out of a sandbox is data.
            Ok(Part { name, body, digest: Some(artifact.sha256.clone()), program: false })
        };
        wanted.iter().map(part).collect::<Result<Vec<_>>>()
    });
    let mut parts =
        reading.await.map_err(|error| Diagnostic::new("manifest::artifacts", error.to_string()))??;
    let content = match (&handover.path, parts.pop()) {
        (Some(path), Some(part)) => {
            let name = path.rsplit('/').next().unwrap_or(path).to_owned();
            Parts::One(Part { name, ..part })
        }
        (_, last) => Parts::Several(parts.into_iter().chain(last).collect()),
    };
    Ok(Found { from, run: Some(id), content, ..Found::default() })
}

/// The run that is meant, when it succeeded and published.
async fn row(handover: &Handover, store: &Store) -> Result<Option<RunRow>> {
    let row = match &handover.which {
        Which::Latest => {
            let filter = RunFilter {
                workflow: Some(handover.workflow.clone()),
                state: Some(RunState::Succeeded),
                limit: Some(1),
            };
            store.runs(&filter).await?.pop()
        }
        Which::Run(id) => store.run(id).await?,
    };
    let fits = |row: &RunRow| {
        row.workflow == handover.workflow && row.state == RunState::Succeeded && row.published.is_some()
    };
    Ok(row.filter(fits))
}

async fn none(handover: &Handover, entry: &Entry, store: &Store) -> Result<Diagnostic> {
    let workflow = &handover.workflow;
    let message = match &handover.which {
        Which::Latest => {
            format!("`{}` of the manifest: no run of `{workflow}` has succeeded yet", entry.path)
        }
        Which::Run(id) => {
            format!("`{}` of the manifest: {id} is no run of `{workflow}` that succeeded", entry.path)
        }
    };
    let others = store.runs(&RunFilter { state: Some(RunState::Succeeded), ..RunFilter::default() }).await?;
    let near =
        nearest(workflow, others.iter().map(|run| run.workflow.as_str())).filter(|near| near != workflow);
    let help = match near {
        Some(near) => format!("did you mean `{near}`? `tidemill runs` lists all"),
        None => {
            format!("run `{workflow}` first, or say `optional = true` in `mill.artifacts` to go on without")
        }
    };
    Ok(Diagnostic::new("manifest::no_run", message).help(help))
}

fn wanted(handover: &Handover, run: &RunRow, artifacts: Vec<Content>) -> Result<Vec<Content>> {
    let Some(path) = &handover.path else {
        return Ok(artifacts);
    };
    let names: Vec<String> = artifacts.iter().map(|artifact| format!("`{}`", artifact.path)).collect();
    let found: Vec<Content> = artifacts.into_iter().filter(|artifact| artifact.path == *path).collect();
    if found.is_empty() {
        let message = format!("the run {} of `{}` has no artifact `{path}`", run.id, run.workflow);
        return Err(
            Diagnostic::new("manifest::no_path", message).help(format!("it has {}", names.join(", ")))
        );
    }
    Ok(found)
}

/// How the paths of a run's artifacts are written in the outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// As declared.
    Whole,
    /// Without the folder that all of them share.
    Short,
}

/// How these are.
pub(super) fn standing(artifacts: &[Content]) -> Standing {
    let common = artifacts.iter().all(|artifact| artifact.path.starts_with(COMMON));
    if common { Standing::Short } else { Standing::Whole }
}

/// Where an artifact stands in its run's folder.
pub(super) fn short(artifact: &Content, standing: Standing) -> &str {
    artifact.path.strip_prefix(COMMON).filter(|_| standing == Standing::Short).unwrap_or(&artifact.path)
}

/// Takes a published file into the cache, as the bytes that were checked or not at all. Gives where they stand.
pub(super) fn keep(file: &Path, artifact: &Content, run: &RunRow, cache: &Cache) -> Result<PathBuf> {
    let kept = if let Some(kept) = cache.file(&artifact.sha256) {
        Some(kept)
    } else {
        let mut source = open(file).map_err(|error| {
            let message = format!("`{}` of the run {} cannot be read", artifact.path, run.id);
            Diagnostic::new("manifest::artifacts", message).cause(error).help(format!(
                "it was published in {}; put it back, or run `{}` again",
                run.published.as_deref().unwrap_or_default(),
                run.workflow
            ))
        })?;
        cache.copy(&mut source, &artifact.sha256)?
    };
    kept.ok_or_else(|| {
        let message = format!(
            "`{}` of the run {} is not what was published: its hash is another",
            artifact.path, run.id
        );
        Diagnostic::new("manifest::changed", message)
            .help(format!("somebody changed it in the outbox; put it back, or run `{}` again", run.workflow))
    })
}

/// Opens a regular file, never through a link and never waiting for a pipe.
fn open(path: &Path) -> std::io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(std::io::Error::other("it is not a regular file")) }
}
