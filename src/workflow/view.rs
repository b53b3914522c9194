//! What a hook may know of its run.

use std::path::{Path, PathBuf};

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
    /// What it works on, in the order of paths: none, one file, or a batch.
    pub inputs: Vec<Snapshot>,
}

impl RunView {
    /// The path of an input below the folder that all inputs lie in: the name of a single one.
    pub fn below<'a>(&self, input: &'a Snapshot) -> &'a Path {
        let folders = self.inputs.iter().filter_map(|input| input.path.as_path().parent());
        let common = folders
            .map(Path::to_owned)
            .reduce(|common, folder| {
                common.ancestors().find(|above| folder.starts_with(above)).unwrap_or(Path::new("")).to_owned()
            })
            .unwrap_or_default();
        let path = input.path.as_path();
        path.strip_prefix(common).unwrap_or(path)
    }
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
