//! What is placed in the sandbox's `/workspace`.

use crate::workflow::path::WorkspacePath;

/// One entry: `path = content`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Where it goes.
    pub path: WorkspacePath,
    /// What goes there.
    pub content: Content,
    /// What the agent may do with it.
    pub access: Access,
}

/// What an entry holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// The file that was dropped. Under a path ending in `/` it is placed in that folder as `input` with its
    /// extension, never under a name of someone else's choosing.
    Input,
    /// A root-relative file of the project, read when the run starts.
    File(String),
    /// A root-relative folder of the project: regular files and folders only.
    Dir(String),
    /// Text of the script.
    Text(String),
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
