//! Messages about runs on their way to others: each stands from the moment it tells of until it arrived or was given up.

use async_trait::async_trait;
use jiff::Timestamp;
use serde::Serialize;

use crate::diagnostic::Result;
use crate::event::id::{Digest, RunId};
use crate::workflow::notify::{Moment, Notify};

/// Where a message stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// For its next attempt.
    Waiting,
    /// The target took it.
    Delivered,
    /// All attempts failed.
    Failed,
    /// The target said that it is gone.
    Gone,
}

/// A message to one target.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// Its number.
    pub id: i64,
    /// The run it tells of.
    pub run: RunId,
    /// The event's place in the run's log.
    pub seq: u64,
    /// The target's place in the script, from 1.
    pub place: u32,
    /// The run's workflow.
    pub workflow: String,
    /// What happened.
    pub moment: Moment,
    /// Who is told, as the run's script declared it.
    pub target: Notify,
    /// When it happened.
    pub at: Timestamp,
    /// Where it stands.
    pub state: DeliveryState,
    /// How often it was tried.
    pub attempts: u32,
    /// When it is tried next, while it waits.
    pub due: Timestamp,
    /// When its state was found last.
    pub changed_at: Timestamp,
    /// The HTTP status of the last answer.
    pub status: Option<u16>,
    /// The beginning of the last answer's body.
    pub answer: Option<String>,
    /// Why the last attempt failed.
    pub error: Option<String>,
}

/// What came of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempted {
    /// Where the message stands now.
    pub state: DeliveryState,
    /// When it is tried next.
    pub due: Timestamp,
    /// The HTTP status, when there was an answer.
    pub status: Option<u16>,
    /// The beginning of the answer's body.
    pub answer: Option<String>,
    /// Why it failed.
    pub error: Option<String>,
}

impl DeliveryState {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::Waiting, Self::Delivered, Self::Failed, Self::Gone];

    /// The word used on the command line and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
            Self::Gone => "gone",
        }
    }

    /// The state of that word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

impl Delivery {
    /// The id by which a receiver knows a repeat: the same in every attempt.
    pub fn message_id(&self) -> String {
        format!("msg_{}-{}-{}", self.run, self.seq, self.place)
    }
}

/// Messages about runs.
#[async_trait]
pub trait Outbox: Send + Sync {
    /// Makes these the targets of every run that is pinned to `script`.
    async fn know_targets(&self, script: &Digest, targets: &[Notify]) -> Result<()>;

    /// The messages that are tried next, the most urgent first, `limit` at most. Their time need not have come.
    async fn next_deliveries(&self, limit: u32) -> Result<Vec<Delivery>>;

    /// Records what came of an attempt. A target that is gone gets none of its other messages either.
    async fn attempted(&self, delivery: &Delivery, came: &Attempted) -> Result<()>;

    /// The messages in `state`, or all, newest first.
    async fn deliveries(&self, state: Option<DeliveryState>, limit: u32) -> Result<Vec<Delivery>>;

    /// How many messages about a run wait to be sent.
    async fn waiting_deliveries(&self, run: &RunId) -> Result<u64>;

    /// Has a message tried again from the start; its target counts as there again.
    ///
    /// Errors: `usage::unknown_delivery`.
    async fn redeliver(&self, id: i64) -> Result<Delivery>;
}
