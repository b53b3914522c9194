//! What starts a run, and what it says to it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What starts a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// A file was dropped into the inbox.
    Drop,
    /// An instant of a schedule came.
    Schedule,
    /// A request came to a webhook.
    Webhook,
    /// A person asked for it.
    Manual,
}

impl Trigger {
    /// Every trigger.
    pub const ALL: [Self; 4] = [Self::Drop, Self::Schedule, Self::Webhook, Self::Manual];

    /// The word used in Lua, on the command line and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Drop => "drop",
            Self::Schedule => "schedule",
            Self::Webhook => "webhook",
            Self::Manual => "manual",
        }
    }

    /// The trigger of that word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|trigger| trigger.as_str() == word)
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// What a trigger knows besides the files: parts of a path, a sidecar's content. Names and JSON values, data of
/// someone else's choosing.
pub type Params = serde_json::Map<String, serde_json::Value>;
