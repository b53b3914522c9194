//! The states of a run and of an input.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Waiting for its turn.
    Queued,
    /// Image, sandbox and workspace are being made.
    Preparing,
    /// The agent works.
    Running,
    /// Its artifacts are being checked.
    Checking,
    /// Findings went back to the agent.
    Repairing,
    /// Artifacts and receipt are on their way to the outbox.
    Publishing,
    /// Published.
    Succeeded,
    /// The checks still fail after all repairs; nothing is published.
    Rejected,
    /// A guardrail stopped it.
    Denied,
    /// A limit stopped it.
    Exhausted,
    /// An error stopped it.
    Failed,
    /// A person stopped it.
    Cancelled,
}

impl RunState {
    /// Every state, in the order of the story.
    pub const ALL: [Self; 12] = [
        Self::Queued,
        Self::Preparing,
        Self::Running,
        Self::Checking,
        Self::Repairing,
        Self::Publishing,
        Self::Succeeded,
        Self::Rejected,
        Self::Denied,
        Self::Exhausted,
        Self::Failed,
        Self::Cancelled,
    ];

    /// Whether no other state can follow.
    pub fn is_end(self) -> bool {
        matches!(
            self,
            Self::Succeeded
                | Self::Rejected
                | Self::Denied
                | Self::Exhausted
                | Self::Failed
                | Self::Cancelled
        )
    }

    /// The word used in Lua, the command line and the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Preparing => "preparing",
            Self::Running => "running",
            Self::Checking => "checking",
            Self::Repairing => "repairing",
            Self::Publishing => "publishing",
            Self::Succeeded => "succeeded",
            Self::Rejected => "rejected",
            Self::Denied => "denied",
            Self::Exhausted => "exhausted",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The state of that word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

impl fmt::Display for RunState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// Where an input of the drop folder stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputState {
    /// Noticed for the first time.
    Seen,
    /// Still changing, or not yet quiet for long enough.
    Settling,
    /// Complete; about to be claimed.
    Ready,
    /// Taken out of the inbox for its runs.
    Claimed,
    /// All its runs succeeded.
    Done,
    /// A run of it failed, was denied, exhausted or cancelled.
    Failed,
    /// A run of it was rejected.
    Rejected,
    /// It vanished before it was claimed.
    Gone,
    /// A rule says it is not for us.
    Ignored,
    /// It cannot be read or moved.
    Blocked,
    /// Something that goes with it is not there.
    Incomplete,
    /// It is the same as one that was taken before.
    Duplicate,
    /// It waits in an inbox that is not there.
    RootAbsent,
}

impl InputState {
    /// Every state.
    pub const ALL: [Self; 13] = [
        Self::Seen,
        Self::Settling,
        Self::Ready,
        Self::Claimed,
        Self::Done,
        Self::Failed,
        Self::Rejected,
        Self::Gone,
        Self::Ignored,
        Self::Blocked,
        Self::Incomplete,
        Self::Duplicate,
        Self::RootAbsent,
    ];

    /// The word used on the command line and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Seen => "seen",
            Self::Settling => "settling",
            Self::Ready => "ready",
            Self::Claimed => "claimed",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
            Self::Gone => "gone",
            Self::Ignored => "ignored",
            Self::Blocked => "blocked",
            Self::Incomplete => "incomplete",
            Self::Duplicate => "duplicate",
            Self::RootAbsent => "root_absent",
        }
    }

    /// The state of that word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

impl fmt::Display for InputState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}
