//! A run's row as a fold over its events.

use jiff::Timestamp;

use crate::diagnostic::Report;
use crate::event::again::Again;
use crate::event::state::RunState;
use crate::event::usage::{Cost, Usage};
use crate::event::{Event, What};

/// The part of the row that events change.
#[derive(Debug)]
pub(in crate::store) struct Folded {
    pub(in crate::store) state: RunState,
    pub(in crate::store) started_at: Option<Timestamp>,
    pub(in crate::store) ended_at: Option<Timestamp>,
    pub(in crate::store) turns: u32,
    pub(in crate::store) usage: Usage,
    pub(in crate::store) cost: Option<Cost>,
    pub(in crate::store) published: Option<String>,
    /// Only ever set by the last event.
    pub(in crate::store) report: Option<Report>,
    pub(in crate::store) again: Option<Again>,
}

impl Folded {
    /// Whether nobody has the run after this: it waits, or it is over.
    pub(in crate::store) fn lets_go(&self) -> bool {
        self.state == RunState::Queued || self.state.is_end()
    }
}

/// What `event` changes in the row. Pure, so that the row can always be told from the log.
pub(in crate::store) fn fold(row: &mut Folded, event: &Event) {
    match &event.what {
        What::StateEntered { state, .. } => {
            row.state = *state;
            if *state == RunState::Preparing {
                row.started_at = Some(event.at);
            }
        }
        What::ModelResponded { usage, cost, .. } => {
            row.turns = row.turns.saturating_add(1);
            row.usage += *usage;
            row.cost = row.cost.zip(*cost).map(|(sum, cost)| sum + cost);
        }
        What::ModelCut { usage, cost, .. } => {
            row.usage += *usage;
            row.cost = row.cost.zip(*cost).map(|(sum, cost)| sum + cost);
        }
        What::Postponed { again } => {
            row.state = RunState::Queued;
            row.again = Some(again.clone());
        }
        What::Published { folder, .. } => row.published = Some(folder.clone()),
        What::RunEnded { state, report, usage, cost } => {
            row.state = *state;
            row.ended_at = Some(event.at);
            row.report.clone_from(report);
            row.again = None;
            // A run that started over spent more than its last attempt knows of.
            if usage.total() >= row.usage.total() {
                row.usage = *usage;
                row.cost = *cost;
            }
        }
        What::RunQueued { .. }
        | What::ImageReady { .. }
        | What::SandboxStarted { .. }
        | What::NetworkDecided { .. }
        | What::NetworkEnded { .. }
        | What::NetworkLearned { .. }
        | What::WorkspaceFilled { .. }
        | What::PromptReady { .. }
        | What::GuardrailChecked { .. }
        | What::ModelRequested { .. }
        | What::ModelRetried { .. }
        | What::Said { .. }
        | What::ToolStarted { .. }
        | What::ToolEnded { .. }
        | What::Checkpointed { .. }
        | What::Resumed { .. }
        | What::LimitReached { .. }
        | What::ArtifactCollected { .. }
        | What::ChecksEnded { .. }
        | What::KeptAside { .. }
        | What::Warned { .. } => {}
    }
}

/// Whether a run that is interrupted later goes on behind this point: whatever interrupts it then is not the same thing
/// again and again.
pub(in crate::store) fn is_progress(what: &What) -> bool {
    matches!(
        what,
        What::PromptReady { .. }
            | What::ModelResponded { .. }
            | What::ToolEnded { .. }
            | What::ChecksEnded { .. }
            | What::Published { .. }
    )
}
