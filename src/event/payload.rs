//! Text in an event: inline when short, by hash in the blob store when long.

use serde::{Deserialize, Serialize};

use crate::event::id::Digest;

/// Text that an event carries or points to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    /// The text itself.
    Inline(String),
    /// Too long for an event: the whole is in the blob store.
    Blob {
        /// Under this hash.
        digest: Digest,
        /// Bytes.
        size: u64,
        /// The first few hundred characters, for lists.
        preview: String,
    },
}

impl Default for Payload {
    fn default() -> Self {
        Self::Inline(String::new())
    }
}

impl Payload {
    /// Bytes above which text goes to the blob store: a log of many turns must stay quick to read.
    pub const INLINE_LIMIT: usize = 64 * 1024;

    /// What can be shown without opening the blob store.
    pub fn preview(&self) -> &str {
        match self {
            Self::Inline(text) => text,
            Self::Blob { preview, .. } => preview,
        }
    }
}
