//! A run that published and could not say so any more, because its process was killed or nothing could be recorded.

use crate::artifact::{self, Destination};
use crate::config::Project;
use crate::diagnostic::Result;
use crate::event::What;
use crate::event::state::RunState;
use crate::store::{RunRow, Store};

/// Ends the run as succeeded when its result stands in the outbox: a second time would publish twice. Gives whether it
/// did.
pub(crate) async fn end_if_published(project: &Project, store: &Store, run: &RunRow) -> Result<bool> {
    if run.published.is_none() {
        let destination = Destination::of(project.outbox(), &run.workflow, &run.inputs, &run.id);
        let there = match run.state {
            RunState::Publishing => artifact::published_before(&destination, &run.id),
            _ => None,
        };
        let Some(there) = there else { return Ok(false) };
        store.append_under(&run.lease(), there.event(&project.root)).await?;
    }
    let ended = What::RunEnded { state: RunState::Succeeded, report: None, usage: run.usage, cost: run.cost };
    store.append_under(&run.lease(), ended).await.map(|_| true)
}
