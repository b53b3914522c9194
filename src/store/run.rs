//! The row of a run: what lists and the queue need without reading its log.

use async_trait::async_trait;
use jiff::Timestamp;
use serde::Serialize;

use crate::diagnostic::{Report, Result};
use crate::event::again::Again;
use crate::event::id::{Digest, RunId};
use crate::event::input::InputFile;
use crate::event::state::RunState;
use crate::event::trigger::{Params, Trigger};
use crate::event::usage::{Cost, Usage};
use crate::owner::Owner;
use crate::store::ledger::InputId;
use crate::store::queue::Lease;

/// A run to be queued.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRun {
    /// Its id.
    pub id: RunId,
    /// The workflow's name.
    pub workflow: String,
    /// What started it.
    pub trigger: Trigger,
    /// What it works on.
    pub inputs: Vec<InputFile>,
    /// What the trigger knows besides.
    pub params: Params,
    /// The bundle of scripts it is pinned to: a blob of the store.
    pub script: Digest,
    /// Name of the model.
    pub model: String,
    /// The ledger's row, when a file was dropped.
    pub input: Option<InputId>,
    /// Whether it belongs to the process that starts it and never waits in the queue.
    pub by_hand: bool,
    /// Who has it from the beginning, when it is by hand.
    pub holder: Option<Owner>,
    /// The run it does over.
    pub retry_of: Option<RunId>,
    /// Now.
    pub at: Timestamp,
}

impl NewRun {
    /// A run that works on no file and was told nothing. One that a person starts is by hand.
    pub fn new(
        id: RunId,
        workflow: &str,
        trigger: Trigger,
        script: Digest,
        model: &str,
        at: Timestamp,
    ) -> Self {
        Self {
            id,
            workflow: workflow.to_owned(),
            trigger,
            inputs: Vec::new(),
            params: Params::new(),
            script,
            model: model.to_owned(),
            input: None,
            by_hand: trigger == Trigger::Manual,
            holder: None,
            retry_of: None,
            at,
        }
    }
}

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunRow {
    /// Its id.
    pub id: RunId,
    /// The workflow's name.
    pub workflow: String,
    /// What started it.
    pub trigger: Trigger,
    /// Where it stands.
    pub state: RunState,
    /// Name of the model.
    pub model: String,
    /// The bundle of scripts it is pinned to: a blob of the store.
    pub script: Digest,
    /// What it works on.
    pub inputs: Vec<InputFile>,
    /// What the trigger knows besides.
    pub params: Params,
    /// The ledger's row, when a file was dropped.
    pub input: Option<InputId>,
    /// When it was queued.
    pub queued_at: Timestamp,
    /// When its last attempt began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Answers of the model so far.
    pub turns: u32,
    /// Tokens so far.
    pub usage: Usage,
    /// What they cost, when every price is known.
    pub cost: Option<Cost>,
    /// Root-relative folder in the outbox, when it published.
    pub published: Option<String>,
    /// Why it ended, for every end but success.
    pub report: Option<Report>,
    /// How often the queue started it since it came further the last time.
    pub attempts: u32,
    /// How often it was taken; what is written with less is refused.
    pub fence: u64,
    /// The process that has it now: machine, boot, process id and start.
    pub holder: Option<String>,
    /// Whether it belongs to the process that started it and never waits in the queue.
    pub by_hand: bool,
    /// Why it is tried again, and when, after it failed by something that passes.
    pub again: Option<Again>,
    /// The run it does over.
    pub retry_of: Option<RunId>,
    /// Since when it is to stop.
    pub cancel_at: Option<Timestamp>,
}

impl RunRow {
    /// The right to write to it, for who has it.
    pub fn lease(&self) -> Lease {
        Lease { run: self.id.clone(), fence: self.fence }
    }

    /// What it waits for before it is tried again.
    pub fn waits_for(&self) -> Option<&Again> {
        self.again.as_ref().filter(|_| self.state == RunState::Queued)
    }
}

/// Which runs a list shows. Nothing set: all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Of this workflow.
    pub workflow: Option<String>,
    /// In this state.
    pub state: Option<RunState>,
    /// So many at most, the newest.
    pub limit: Option<u32>,
}

/// The rows of runs.
#[async_trait]
pub trait Runs: Send + Sync {
    /// The run of that id.
    async fn run(&self, id: &RunId) -> Result<Option<RunRow>>;

    /// An id that no run has: of a thousand runs in one second two would have the same.
    async fn fresh_id(&self, now: Timestamp) -> Result<RunId>;

    /// The runs that fit, newest first.
    async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>>;

    /// Runs that ended in one of these states, since then, and that no other run does over; oldest first.
    async fn to_retry(
        &self,
        states: &[RunState],
        workflow: Option<&str>,
        since: Option<Timestamp>,
    ) -> Result<Vec<RunRow>>;

    /// The runs of an input, oldest first.
    async fn runs_of(&self, input: InputId) -> Result<Vec<RunRow>>;

    /// The run a person means: its id, or the beginning or the end of it, as long as only one run fits.
    ///
    /// Errors: `usage::unknown_run`, `usage::ambiguous_run`.
    async fn resolve(&self, text: &str) -> Result<RunRow>;
}
