//! What other workflows published, for the functions of a script that ask.

use std::fmt;
use std::path::PathBuf;

use tokio::runtime::Handle;

use crate::artifact::{Content, Receipt};
use crate::config::Project;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::{Event, What};
use crate::run::workspace::artifacts::{keep, short, standing};
use crate::run::workspace::cache::Cache;
use crate::script::archive::{Archive, Handed, Wanted};
use crate::store::{RunRow, Store};
use crate::workflow::path::WorkspacePath;

/// More are no manifest; a shorter time has fewer.
const MOST: usize = 10_000;

/// The store and the outbox of a project. It is asked from Lua's thread, which waits for the runtime it was made in.
pub(super) struct Outbox {
    project: Project,
    store: Store,
    runtime: Handle,
}

impl Outbox {
    /// To be called within the runtime that reads the store.
    pub(super) fn new(project: &Project, store: &Store) -> Self {
        Self { project: project.clone(), store: store.clone(), runtime: Handle::current() }
    }

    async fn find(&self, wanted: &Wanted) -> Result<Vec<Handed>> {
        let mut found = Vec::new();
        for run in self.store.published(&wanted.workflow, wanted.since, wanted.until).await? {
            let events = self.store.all_events(&run.id).await?;
            let Some(at) = published_at(&events) else { continue };
            if wanted.since.is_some_and(|since| at < since) || wanted.until.is_some_and(|until| at >= until) {
                continue;
            }
            let artifacts = Receipt::fold(&events)?.artifacts;
            let folder = standing(&artifacts);
            for artifact in artifacts {
                let name = short(&artifact, folder).to_owned();
                let is_wanted =
                    wanted.name.as_ref().is_none_or(|wanted| *wanted == name || *wanted == artifact.path);
                // What this version would refuse to place is not offered.
                if !is_wanted || WorkspacePath::parse(&artifact.path).is_err() {
                    continue;
                }
                if found.len() == MOST {
                    return Err(too_many(wanted));
                }
                found.push(Handed {
                    run: run.id.clone(),
                    workflow: run.workflow.clone(),
                    name,
                    path: artifact.path,
                    size: artifact.size,
                    digest: artifact.sha256,
                    at,
                });
            }
        }
        Ok(found)
    }

    async fn run(&self, handed: &Handed) -> Result<RunRow> {
        self.store.run(&handed.run).await?.ok_or_else(|| {
            Diagnostic::new("manifest::no_run", format!("the run {} is gone", handed.run))
                .help("it was removed while this one began; start it again")
        })
    }
}

impl Archive for Outbox {
    fn list(&self, wanted: &Wanted) -> Result<Vec<Handed>> {
        self.runtime.block_on(self.find(wanted))
    }

    fn file(&self, handed: &Handed) -> Result<PathBuf> {
        let run = self.runtime.block_on(self.run(handed))?;
        let folder = self.project.root.join(run.published.as_deref().unwrap_or_default());
        let artifact =
            Content { path: handed.path.clone(), size: handed.size, sha256: handed.digest.clone() };
        let cache = Cache::new(&self.project.state());
        keep(&folder.join(&handed.name), &artifact, &run, &cache)
    }
}

fn published_at(events: &[Event]) -> Option<jiff::Timestamp> {
    events.iter().find(|event| matches!(event.what, What::Published { .. })).map(|event| event.at)
}

fn too_many(wanted: &Wanted) -> Diagnostic {
    let message = format!("`{}` published more than {MOST} artifacts in that time", wanted.workflow);
    Diagnostic::new("manifest::too_many", message)
        .help("give `mill.artifacts` a later `since`, an `until`, or the `name` of one artifact")
}

impl fmt::Debug for Outbox {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Outbox").field("root", &self.project.root).finish_non_exhaustive()
    }
}
