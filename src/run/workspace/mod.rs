//! From a manifest to files for the sandbox.

mod archive;
mod artifacts;
mod assemble;
mod cache;
mod folder;
mod found;
mod git;
mod url;

use std::sync::Arc;

use crate::clock::Clock;
use crate::config::Project;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::origin::Origin;
use crate::run::workspace::archive::Outbox;
use crate::run::workspace::assemble::assemble;
use crate::run::workspace::cache::Cache;
use crate::run::workspace::found::Found;
use crate::run::workspace::git::Commits;
use crate::sandbox::{Placement, Progress};
use crate::script::Loaded;
use crate::store::Store;
use crate::workflow::manifest::{Content, Entry, Manifest};
use crate::workflow::units::show_size;
use crate::workflow::view::RunView;

/// What the workspace of a run is filled with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filling {
    /// Every file, in the order of paths.
    pub files: Vec<Placement>,
    /// Where each entry is from, in the order of the manifest.
    pub origins: Vec<Origin>,
}

impl Filling {
    /// Whether it can fit in a workspace of so many bytes; better said before a container is made.
    pub fn fits(&self, disk: u64) -> Result<()> {
        let bytes: u64 = self.origins.iter().map(|origin| origin.bytes).sum();
        if bytes <= disk {
            return Ok(());
        }
        let largest = self.origins.iter().max_by_key(|origin| origin.bytes);
        let message = format!(
            "the files of the manifest have {}, and the workspace holds {}",
            show_size(bytes),
            show_size(disk)
        );
        Err(Diagnostic::new("sandbox::workspace_full", message).help(format!(
            "raise `limits.disk` (and `limits.memory`, which holds it); the largest entry is `{}`",
            largest.map_or("", |origin| origin.path.as_str())
        )))
    }
}

/// Where content is looked for.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    /// Whose files.
    pub project: &'a Project,
    /// Where runs and what they published are recorded.
    pub store: &'a Store,
    /// How long is waited before a server is asked again.
    pub clock: &'a dyn Clock,
    /// Who is told what takes long.
    pub progress: &'a dyn Progress,
}

impl Sources<'_> {
    /// Every file of the manifest: fetched where it is elsewhere, folders opened, everything hashed.
    pub async fn fill(&self, manifest: &[Entry], run: &RunView) -> Result<Filling> {
        let (mut found, mut commits) = (Vec::new(), Commits::new());
        for entry in manifest {
            found.push((entry.clone(), self.find(entry, run, &mut commits).await?));
        }
        let assembling = tokio::task::spawn_blocking(move || assemble(found));
        assembling.await.map_err(|error| {
            Diagnostic::new("run::manifest", "the files of the manifest were not read").cause(error)
        })?
    }

    /// Every file of what a workflow declares, or of what its manifest function gives for the run.
    pub async fn fill_for(&self, loaded: &Loaded, run: &Arc<RunView>) -> Result<Filling> {
        match &loaded.workflow.manifest {
            Manifest::Entries(entries) => self.fill(entries, run).await,
            Manifest::Hook(hook) => {
                let outbox = Arc::new(Outbox::new(self.project, self.store));
                self.fill(&loaded.script.manifest(*hook, run.clone(), outbox).await?, run).await
            }
        }
    }

    async fn find(&self, entry: &Entry, run: &RunView, commits: &mut Commits) -> Result<Found> {
        let cache = Cache::new(&self.project.state());
        match &entry.content {
            Content::Input => Found::input(entry, run),
            Content::File(path) => Found::file(entry, path, &self.project.root),
            Content::Dir(folder) => Found::folder(entry, folder, &self.project.root),
            Content::Text(text) => Ok(Found::bytes(text.as_bytes())),
            Content::Bytes(bytes) => Ok(Found::bytes(bytes)),
            Content::Url(download) => url::fetch(download, &cache, self.clock, self.progress).await,
            Content::Git(checkout) => {
                git::fetch(checkout, &self.project.root, &cache, commits, self.progress).await
            }
            Content::Artifacts(handover) => {
                artifacts::find(handover, entry, self.project, self.store, &cache).await
            }
        }
    }
}
