//! The workspace, kept after each turn that may have changed it, so that it outlives its sandbox.
//!
//! The helper lists what stands there; only what changed since the last time is read, into the blob store. A turn that
//! changed nothing costs one question.

pub mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use async_trait::async_trait;
use tokio::sync::Mutex;

use crate::agent::{Journal as _, Keeper};
use crate::clock::Clock;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::What;
use crate::event::id::Digest;
use crate::run::checkpoint::tree::{Leaf, Tree};
use crate::run::folder::RunFolder;
use crate::run::journal::Journal;
use crate::sandbox::{Caps, Entry, EntryKind, Sandbox, SandboxError};
use crate::store::Store;
use crate::workflow::path::WorkspacePath;
use crate::workflow::units::show_size;

/// Entries of a workspace that are listed; one that holds more is not kept.
const MOST: u64 = 200_000;
/// A larger file is not kept.
const LARGEST: u64 = 256 << 20;
/// A file changed this shortly before it was listed, in nanoseconds, may change again without its time telling.
const DOUBT: u64 = 50_000_000;

/// Keeps the workspace of one run.
pub struct Checkpoints<'a> {
    /// Where it is.
    pub sandbox: &'a dyn Sandbox,
    /// Where it is kept.
    pub store: &'a Store,
    /// Where that is recorded.
    pub journal: &'a Journal,
    /// What time it is for the sandbox.
    pub clock: &'a dyn Clock,
    /// Where files are put on their way.
    pub folder: PathBuf,
    /// Bytes of one checkpoint at most: what the workspace may hold.
    pub room: u64,
    /// Files that were given for reading: they come from the manifest again.
    pub given: BTreeSet<WorkspacePath>,
    /// What is known from the last time.
    pub known: Mutex<Known>,
}

/// What the last look at a workspace has shown.
#[derive(Debug, Default)]
pub struct Known {
    files: BTreeMap<WorkspacePath, Seen>,
    warned: bool,
}

/// A file as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    size: u64,
    mode: u32,
    /// When it was changed; nothing when that cannot be trusted.
    changed: Option<u64>,
    /// Hash of its content; nothing when it could not be kept.
    digest: Option<Digest>,
}

#[async_trait]
impl Keeper for Checkpoints<'_> {
    async fn keep(&self, turn: u32) -> Result<()> {
        let mut known = self.known.lock().await;
        let entries = match self.sandbox.list(MOST).await {
            Ok(entries) => entries,
            Err(error) => {
                return self.warn(&mut known, &format!("the workspace cannot be kept: {error}")).await;
            }
        };
        let now = u64::try_from(self.clock.now().as_nanosecond()).unwrap_or(0);
        let (mut files, mut changed) = (BTreeMap::new(), Vec::new());
        let folders = empty_folders(&entries);
        for entry in entries.into_iter().filter(|entry| entry.kind == EntryKind::File) {
            let Some(path) = path_of(&entry) else { continue };
            if self.given.contains(&path) {
                continue;
            }
            let seen = Seen {
                size: entry.size,
                mode: entry.mode & 0o777,
                changed: (entry.changed.saturating_add(DOUBT) < now).then_some(entry.changed),
                digest: None,
            };
            let digest = match known.files.get(&path) {
                Some(before) if before.is_still(&entry) => before.digest.clone(),
                _ => {
                    changed.push(path.clone());
                    None
                }
            };
            files.insert(path, Seen { digest, ..seen });
        }
        let taken = match self.take(&changed, &mut files).await? {
            Ok(taken) => taken,
            Err(error) => {
                return self.warn(&mut known, &format!("the workspace cannot be kept: {error}")).await;
            }
        };
        if let Some(words) = lost_words(&files) {
            self.warn(&mut known, &words).await?;
        }
        let leaves = files.iter().filter_map(|(path, seen)| seen.leaf(path)).collect();
        let tree = Tree { files: leaves, folders };
        known.files = files;
        let tree = tree.put(self.store).await?;
        let what = What::Checkpointed { turn, tree, files: taken.0, bytes: taken.1 };
        self.journal.append(what).await
    }
}

impl Checkpoints<'_> {
    /// Takes changed files into the blob store, and notes their hashes. Gives their number and bytes.
    async fn take(
        &self,
        changed: &[WorkspacePath],
        files: &mut BTreeMap<WorkspacePath, Seen>,
    ) -> Result<Result<(u64, u64), SandboxError>> {
        if changed.is_empty() {
            return Ok(Ok((0, 0)));
        }
        clear(&self.folder);
        RunFolder::make(&self.folder)?;
        let caps = Caps { file: LARGEST, total: self.room };
        let collected = match self.sandbox.collect(changed, &caps, &self.folder).await {
            Ok(collected) => collected,
            Err(error) => return Ok(Err(error)),
        };
        let (mut count, mut bytes) = (0, 0);
        for artifact in collected.artifacts {
            let (digest, size) = self.store.blobs().put_file(&artifact.file).await?;
            (count, bytes) = (count + 1, bytes + size);
            if let Some(seen) = files.get_mut(&artifact.path) {
                (seen.digest, seen.size) = (Some(digest), size);
            }
        }
        clear(&self.folder);
        Ok(Ok((count, bytes)))
    }

    /// Says once what a lost sandbox will take with it.
    async fn warn(&self, known: &mut Known, words: &str) -> Result<()> {
        if std::mem::replace(&mut known.warned, true) {
            return Ok(());
        }
        let warning = Diagnostic::new("run::not_kept", words.to_owned()).warning().help(
            "when the sandbox is lost, these files are lost with it; the run goes on without them then",
        );
        self.journal.append(What::Warned { report: warning.report() }).await
    }
}

impl Seen {
    /// Whether what is listed now is what was seen then.
    fn is_still(&self, entry: &Entry) -> bool {
        (self.size, self.mode, self.changed) == (entry.size, entry.mode & 0o777, Some(entry.changed))
    }

    fn leaf(&self, path: &WorkspacePath) -> Option<Leaf> {
        let digest = self.digest.clone()?;
        Some(Leaf { path: path.to_string(), digest, mode: self.mode, size: self.size })
    }
}

/// What of a workspace is not kept, in words.
fn lost_words(files: &BTreeMap<WorkspacePath, Seen>) -> Option<String> {
    let mut lost = files.iter().filter(|(_, seen)| seen.digest.is_none());
    let (path, seen) = lost.next()?;
    let more = match lost.count() {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    Some(format!("`{path}` ({}){more} cannot be kept", show_size(seen.size)))
}

/// A path nobody can name in a workflow is no path of ours.
fn path_of(entry: &Entry) -> Option<WorkspacePath> {
    WorkspacePath::parse(std::str::from_utf8(&entry.path).ok()?).ok()
}

/// Folders nothing stands in, in the order of paths.
fn empty_folders(entries: &[Entry]) -> Vec<String> {
    let paths: Vec<WorkspacePath> = entries.iter().filter_map(path_of).collect();
    let full: BTreeSet<&str> = paths.iter().flat_map(WorkspacePath::parents).collect();
    let folders = entries.iter().filter(|entry| entry.kind == EntryKind::Folder).filter_map(path_of);
    let empty = folders.filter(|path| !full.contains(path.as_str()));
    empty.map(|path| path.to_string()).collect::<BTreeSet<_>>().into_iter().collect()
}

fn clear(folder: &std::path::Path) {
    // Where there is none, nothing is to be removed.
    let _ = std::fs::remove_dir_all(folder);
}
