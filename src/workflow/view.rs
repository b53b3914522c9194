//! What a hook may know of its run.

use std::path::PathBuf;

use jiff::Timestamp;

use crate::event::id::{Digest, RunId};
use crate::event::input::RawPath;
use crate::event::trigger::{Params, Trigger};
use crate::workflow::path::WorkspacePath;
use crate::workflow::schedule::Fired;

/// The run as a hook sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunView {
    /// The run's id.
    pub id: RunId,
    /// The workflow's name.
    pub workflow: String,
    /// What started it.
    pub trigger: Trigger,
    /// What the trigger knows besides the files.
    pub params: Params,
    /// When it was queued.
    pub queued_at: Timestamp,
    /// What its schedule knows of it, when one started it.
    pub fired: Option<Fired>,
    /// 0, then one more for each repair.
    pub attempt: u32,
    /// What it works on: none or one file.
    pub inputs: Vec<Snapshot>,
}

/// An input file as the run keeps it: nobody changes it while the run works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The path it had: bytes of someone else's choosing, data and never a name of ours.
    pub path: RawPath,
    /// Where the run's own copy stands on the host.
    pub file: PathBuf,
    /// Bytes.
    pub size: u64,
    /// Hash of its content.
    pub digest: Digest,
}

/// A declared output, taken out of the sandbox into a folder of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// Its path in the workspace.
    pub path: WorkspacePath,
    /// Where it stands on the host.
    pub file: PathBuf,
    /// Bytes.
    pub size: u64,
    /// Hash of its content.
    pub digest: Digest,
}
