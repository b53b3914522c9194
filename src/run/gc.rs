//! Garbage: what ended longer ago than it is to be remembered, and content that nothing mentions any more.
//!
//! A run that has not ended, an input that was not put away, and what is published are never touched.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jiff::{SignedDuration, Timestamp};

use crate::config::Project;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::{Digest, RunId};
use crate::store::{Store, Stray};

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
    let (folders, runs) = (project.state().join("runs"), garbage.runs.clone());
    let folders = blocking(move || folders_of(&folders, &runs)).await?;
    for (run, folder, bytes) in folders {
        // One without a run was left when this was broken off, or its run is just being queued.
        let is_left = match run {
            Whose::Outlived => true,
            Whose::Other { id, is_young } => !is_young && store.run(&id).await?.is_none(),
        };
        if is_left {
            garbage.kept_bytes += bytes;
            garbage.kept.push(folder);
        }
    }
    let wanted = store.mentioned(garbage.before).await?;
    garbage.strays = store.blobs().strays(wanted, SystemTime::now() - YOUNG).await?;
    Ok(garbage)
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

/// Whose folder it is.
enum Whose {
    /// A run's that can be forgotten.
    Outlived,
    /// Another run's, if there is such a run.
    Other { id: RunId, is_young: bool },
}

/// The folders of runs, with their bytes where they may be removed.
fn folders_of(folders: &Path, outlived: &[RunId]) -> Vec<(Whose, PathBuf, u64)> {
    let entries = std::fs::read_dir(folders).into_iter().flatten().flatten();
    let found = entries.filter_map(|entry| {
        let (id, path) = (RunId::parse(entry.file_name().to_str()?)?, entry.path());
        let bytes = bytes_in(&path);
        if outlived.contains(&id) {
            return Some((Whose::Outlived, path, bytes));
        }
        let made = entry.metadata().and_then(|data| data.modified()).ok()?;
        let is_young = made + YOUNG > SystemTime::now();
        Some((Whose::Other { id, is_young }, path, bytes))
    });
    found.collect()
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
