//! What is placed in the sandbox's `/workspace`.

use crate::event::id::{Digest, RunId};
use crate::workflow::Hook;
use crate::workflow::mode::Mode;
use crate::workflow::path::WorkspacePath;

/// What a workflow declares about its workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Manifest {
    /// The same for every run, in path order.
    Entries(Vec<Entry>),
    /// A function of the run.
    Hook(Hook),
}

impl Manifest {
    /// The entries that are known before there is a run.
    pub fn entries(&self) -> &[Entry] {
        match self {
            Self::Entries(entries) => entries,
            Self::Hook(_) => &[],
        }
    }
}

/// One entry: `path = content`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Where it goes.
    pub path: WorkspacePath,
    /// What goes there.
    pub content: Content,
    /// What the agent may do with it.
    pub access: Access,
    /// Permission bits of its files; without, they follow from `access` and from what the file may do where it is from.
    pub mode: Option<Mode>,
}

/// What an entry holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// The file that was dropped. Under a path ending in `/` it is placed in that folder as `input` with its
    /// extension, never under a name of someone else's choosing.
    Input,
    /// A root-relative file of the project, read when the run starts.
    File(String),
    /// A folder of the project.
    Dir(Folder),
    /// Text of the script.
    Text(String),
    /// Bytes of the script.
    Bytes(Vec<u8>),
    /// A file from the network.
    Url(Download),
    /// A repository, or a part of it.
    Git(Checkout),
    /// What another workflow published.
    Artifacts(Handover),
}

/// A root-relative folder of the project: regular files and folders only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Folder {
    /// Where it is.
    pub path: String,
    /// What is left out: lines of a `.gitignore`.
    pub ignore: Vec<String>,
}

/// A file that is fetched, and taken only when it is what it was when the script was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Download {
    /// `https://...` or `http://...`, without a password.
    pub url: String,
    /// Hash of its content.
    pub sha256: Digest,
    /// It is not read any further than so many bytes.
    pub max: u64,
}

impl Download {
    /// A file that is larger fits in no workspace that has the default limit.
    pub const MAX: u64 = 1 << 30;
}

/// A repository at one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkout {
    /// Where it is.
    pub repository: Repository,
    /// Branch, tag or commit.
    pub reference: String,
    /// The file or folder of it that is wanted; without, all of it.
    pub path: Option<String>,
    /// What is left out: lines of a `.gitignore`.
    pub ignore: Vec<String>,
    /// Whether `.git` comes along.
    pub history: bool,
    /// Whether its submodules come along.
    pub submodules: bool,
}

/// Where a repository is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repository {
    /// `https://`, `ssh://` or `file:///`, without a password.
    Url(String),
    /// A root-relative folder of the project.
    Folder(String),
}

/// Artifacts of a run that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handover {
    /// Name of the workflow that published them.
    pub workflow: String,
    /// The one that is wanted, as that workflow declares it; without, all of them.
    pub path: Option<String>,
    /// Which run.
    pub which: Which,
    /// Whether there may be none.
    pub optional: bool,
}

/// Which of a workflow's runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Which {
    /// The last one that succeeded.
    #[default]
    Latest,
    /// This one.
    Run(RunId),
}

/// What the agent may do with an entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Access {
    /// Read it.
    #[default]
    ReadOnly,
    /// Read, change and delete it.
    ReadWrite,
}
