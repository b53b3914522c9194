//! A run's row as a fold over its events.

use crate::event::state::RunState;
use crate::event::{Event, What};
use crate::store::run::RunRow;

/// What `event` changes in the row. Pure, so that the row can always be told from the log.
pub(super) fn fold(row: &mut RunRow, event: &Event) {
    if is_progress(&event.what) {
        row.attempts = 0;
    }
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
        What::Published { folder, .. } => row.published = Some(folder.clone()),
        What::RunEnded { state, report, usage, cost } => {
            row.state = *state;
            row.ended_at = Some(event.at);
            row.report.clone_from(report);
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
fn is_progress(what: &What) -> bool {
    matches!(
        what,
        What::PromptReady { .. }
            | What::ModelResponded { .. }
            | What::ToolEnded { .. }
            | What::ChecksEnded { .. }
            | What::Published { .. }
    )
}
