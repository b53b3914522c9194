//! Where an entry of the workspace is from.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::event::id::{Digest, RunId};

/// One entry of the manifest as it was placed: from where, and exactly what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Its path in the workspace, as declared.
    pub path: String,
    /// What it is.
    pub kind: Kind,
    /// The path in the project, the address, the repository or the workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Branch, tag or commit as declared.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The commit that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The run whose artifacts these are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Links that were left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub links_left_out: u64,
    /// Hash of the content: of a file its own, of several that of the lines `<sha256>  <path>` in the order of paths,
    /// as `sha256sum` prints them.
    pub sha256: Digest,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The file that was dropped.
    Input,
    /// A file of the project.
    File,
    /// A folder of the project.
    Dir,
    /// Text of the script.
    Text,
    /// Bytes of the script.
    Bytes,
    /// A file from the network.
    Url,
    /// A repository, or a part of it.
    Git,
    /// What another workflow published.
    Artifacts,
}

impl Kind {
    /// The word for it, as in `mill.WORD`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::File => "file",
            Self::Dir => "dir",
            Self::Text => "text",
            Self::Bytes => "bytes",
            Self::Url => "url",
            Self::Git => "git",
            Self::Artifacts => "artifacts",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
