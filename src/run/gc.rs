//! Garbage: what ended longer ago than it is to be remembered, and content that nothing mentions any more.
//!
//! A run that has not ended, an input that was not put away, and what is published are never touched.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jiff::{SignedDuration, Timestamp};

use crate::config::Project;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::{Digest, RunId};
use crate::event::state::RunState;
use crate::run::checkpoint::tree::Tree;
use crate::run::past::Past;
use crate::store::{RunFilter, Store, Stray};

/// Content this young may be about to be mentioned.
const YOUNG: Duration = Duration::from_secs(24 * 60 * 60);
/// Runs that are forgotten in one transaction: others write in between.
const GROUP: usize = 100;

/// What can be removed.
#[derive(Debug, Default)]
pub struct Garbage {
    /// Before this ended what is forgotten; nothing when runs are remembered for ever.
    pub before: Option<Timestamp>,
    /// Runs with all their events.
    pub runs: Vec<RunId>,
    /// Inputs of theirs.
    pub inputs: u64,
    /// Folders of files that those runs kept aside.
    pub kept: Vec<PathBuf>,
    /// Bytes in these.
    pub kept_bytes: u64,
    /// Content that nothing mentions.
    pub strays: Vec<Stray>,
}

impl Garbage {
    /// Bytes of the content that nothing mentions.
    pub fn stray_bytes(&self) -> u64 {
        self.strays.iter().map(|stray| stray.size).sum()
    }

    /// Whether there is nothing to remove.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.inputs == 0 && self.kept.is_empty() && self.strays.is_empty()
    }
}

/// Looks for it; `now` is the wall clock's time.
pub async fn find(project: &Project, store: &Store, now: Timestamp) -> Result<Garbage> {
    let mut garbage = Garbage { before: before(project, now), ..Garbage::default() };
    if let Some(before) = garbage.before {
        garbage.runs = store.outlived(before).await?;
        garbage.inputs = store.outlived_inputs(before).await?;
    }
    let runs = project.state().join("runs");
    let mut folders: Vec<PathBuf> = garbage.runs.iter().map(|run| runs.join(run.as_str())).collect();
    // One without a run was left when this was broken off; a young one's run is just being queued.
    for (id, folder) in blocking(move || old_folders(&runs)).await? {
        if store.run(&id).await?.is_none() {
            folders.push(folder);
        }
    }
    (garbage.kept, garbage.kept_bytes) = blocking(move || {
        folders.retain(|folder| folder.is_dir());
        let bytes = folders.iter().map(|folder| bytes_in(folder)).sum();
        (folders, bytes)
    })
    .await?;
    let mut wanted = store.mentioned(garbage.before).await?;
    wanted.extend(kept_workspaces(store).await?);
    garbage.strays = store.blobs().strays(wanted, SystemTime::now() - YOUNG).await?;
    Ok(garbage)
}

/// The files of workspaces to which a run that has not ended may come back.
async fn kept_workspaces(store: &Store) -> Result<Vec<Digest>> {
    let mut wanted = Vec::new();
    for state in RunState::ALL.into_iter().filter(|state| !state.is_end()) {
        let filter = RunFilter { workflow: None, state: Some(state), limit: None };
        for run in store.runs(&filter).await? {
            let past = Past::of(&store.all_events(&run.id).await?);
            if let Some((_, tree)) = past.checkpoint {
                wanted.extend(Tree::read(store, &tree).await?.files.into_iter().map(|leaf| leaf.digest));
            }
        }
    }
    Ok(wanted)
}

/// Removes it. Gives the bytes of content that are free now; the database keeps its size and fills the room anew.
pub async fn remove(store: &Store, garbage: Garbage) -> Result<u64> {
    for runs in garbage.runs.chunks(GROUP) {
        store.forget_runs(runs).await?;
    }
    if let Some(before) = garbage.before {
        store.forget_inputs(before).await?;
    }
    // After their runs: a folder without a run says nothing, a run without its folder would promise files.
    let kept = garbage.kept;
    blocking(move || kept.iter().try_for_each(|folder| remove_folder(folder))).await??;
    let freed = store.blobs().remove(garbage.strays, SystemTime::now() - YOUNG).await?;
    Ok(freed + garbage.kept_bytes)
}

/// Keeps the scripts a daemon is pinned to from being taken for garbage: no run mentions them before the first.
pub fn keep(store: &Store, scripts: &[Digest]) {
    for script in scripts {
        store.blobs().refresh(script);
    }
}

fn before(project: &Project, now: Timestamp) -> Option<Timestamp> {
    let age = SignedDuration::try_from(project.config.retention.runs?).ok()?;
    now.checked_sub(age).ok()
}

/// The folders of runs that nothing was added to for long.
fn old_folders(runs: &Path) -> Vec<(RunId, PathBuf)> {
    let entries = std::fs::read_dir(runs).into_iter().flatten().flatten();
    let old = entries.filter_map(|entry| {
        let changed = entry.metadata().and_then(|data| data.modified()).ok()?;
        let id = RunId::parse(entry.file_name().to_str()?)?;
        (changed + YOUNG <= SystemTime::now()).then(|| (id, entry.path()))
    });
    old.collect()
}

fn remove_folder(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Diagnostic::new("gc::unremovable", format!("cannot remove {}", folder.display()))
                .cause(error)
                .help("the folder .tidemill and all in it must be writable for this user"))
        }
        _ => Ok(()),
    }
}

/// Large folders take their time, and nobody is to wait for them.
async fn blocking<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(act).await.map_err(|error| {
        Diagnostic::new("gc::broken", "removing garbage broke off inside tidemill").cause(error)
    })
}

fn bytes_in(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(data) if data.is_dir() => bytes_in(&entry.path()),
        Ok(data) => data.len(),
        Err(_) => 0,
    });
    sizes.sum()
}
