//! What a manifest function may ask about: the artifacts that other workflows published. Who keeps them implements it,
//! for no script knows a store.

use std::fmt::Debug;
use std::path::PathBuf;

use jiff::Timestamp;

use crate::diagnostic::Result;
use crate::event::id::{Digest, RunId};

/// Knows what was published. Asked from Lua's own thread, which may wait.
pub trait Archive: Debug + Send + Sync {
    /// What fits, in the order it was published.
    fn list(&self, wanted: &Wanted) -> Result<Vec<Handed>>;

    /// A file with the bytes that were published, or why there is none.
    fn file(&self, handed: &Handed) -> Result<PathBuf>;
}

/// Which artifacts are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Of this workflow.
    pub workflow: String,
    /// Published then or later.
    pub since: Option<Timestamp>,
    /// Published before then.
    pub until: Option<Timestamp>,
    /// Of this name or path.
    pub name: Option<String>,
}

/// An artifact that was published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handed {
    /// By this run.
    pub run: RunId,
    /// Of this workflow.
    pub workflow: String,
    /// As it stands in the run's folder of the outbox.
    pub name: String,
    /// As the workflow declares it.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// Hash of its content.
    pub digest: Digest,
    /// When it was published.
    pub at: Timestamp,
}
