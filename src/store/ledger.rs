//! The ledger: every input the drop folder ever saw, and why it stands where it stands.
//!
//! A file on its way through the ledger is safe at every point. `ready` writes where it will be taken to *before* it
//! is moved; `claim` makes the runs *after* it was moved and read, all in one transaction; `bound_for` writes where it
//! will end *before* it is moved there. Whoever starts next finds the file in one of two places and goes on.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use jiff::Timestamp;

use crate::diagnostic::Result;
use crate::event::id::Digest;
use crate::event::input::{Fingerprint, InputChange, RawPath, Role};
use crate::event::state::InputState;
use crate::store::then::Then;

/// An input's row.
pub type InputId = i64;

/// Where an input stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputRow {
    /// Its row.
    pub id: InputId,
    /// Relative to the inbox.
    pub path: RawPath,
    /// The version of the file last seen.
    pub fingerprint: Fingerprint,
    /// Hash of its content, once it was claimed.
    pub digest: Option<Digest>,
    /// Where it stands.
    pub state: InputState,
    /// Why.
    pub reason: Option<String>,
    /// The workflows it was claimed for.
    pub workflows: Vec<String>,
    /// When it was noticed.
    pub first_seen: Timestamp,
    /// When it entered its state.
    pub changed_at: Timestamp,
    /// Where it is taken to, relative to the state folder.
    pub claimed_path: Option<PathBuf>,
    /// Where it ends, relative to the project.
    pub final_path: Option<PathBuf>,
    /// The row of the first file that was claimed with it: its own for a file alone.
    pub parcel: InputId,
    /// What it is for, when it goes with another file.
    pub role: Option<Role>,
    /// Whether it stands in the inbox though it was claimed; that version is not taken again.
    pub kept: bool,
    /// Where it goes when its runs succeeded.
    pub on_success: Then,
    /// Where it goes when not.
    pub on_failure: Then,
}

/// One change of an input, as the ledger keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The row it belongs to.
    pub input: InputId,
    /// When.
    pub at: Timestamp,
    /// The state before; nothing for the first.
    pub from: Option<InputState>,
    /// The state after.
    pub to: InputState,
    /// Why.
    pub reason: Option<String>,
}

/// A file at the place from where it can be read for its runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Its row.
    pub input: InputId,
    /// Where to take it, relative to the state folder.
    pub claimed_path: PathBuf,
}

/// The ledger of inputs.
#[async_trait]
pub trait Ledger: Send + Sync {
    /// Records changes of files that stand in the inbox, all in one transaction. A path without a row gets one.
    async fn record(&self, changes: &[InputChange]) -> Result<Vec<InputId>>;

    /// Records that these files are complete and where each will be taken, before anything is moved.
    async fn ready(&self, changes: &[InputChange]) -> Result<Vec<Taken>>;

    /// Records that a file which was ready stands in the inbox again, or is gone.
    async fn put_back(&self, input: InputId, state: InputState, reason: &str) -> Result<()>;

    /// Records where a claimed file will end (relative to the project), before it is moved there.
    async fn bound_for(&self, input: InputId, final_path: &Path) -> Result<()>;

    /// Records that a claimed file is through: `done`, `failed`, `rejected`, `duplicate` or `gone`.
    async fn finish(&self, input: InputId, state: InputState, reason: &str) -> Result<()>;

    /// The same of a file that still stands in the inbox, unless another version came meanwhile.
    async fn finish_kept(&self, input: InputId, state: InputState, reason: &str) -> Result<()>;

    /// The row of an input.
    async fn input(&self, input: InputId) -> Result<Option<InputRow>>;

    /// Inputs in one of `states`, oldest first.
    async fn inputs(&self, states: &[InputState]) -> Result<Vec<InputRow>>;

    /// The inputs that changed last, in `state` if one is given, `limit` at most.
    async fn latest_inputs(&self, state: Option<InputState>, limit: u32) -> Result<Vec<InputRow>>;

    /// Every input that ever had that path, oldest first, with its changes in order.
    async fn history(&self, path: &RawPath) -> Result<Vec<(InputRow, Vec<Change>)>>;
}
