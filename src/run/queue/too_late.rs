//! Runs of a schedule that waited for longer than their schedule allows.

use super::Queue;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::trigger::Trigger;
use crate::run::journal::Journal;
use crate::store::RunRow;

impl Queue {
    /// Ends a run that waited until the deadline of its schedule. One that has begun once goes on.
    pub(super) async fn is_too_late(&self, row: &RunRow) -> Result<bool> {
        if row.trigger != Trigger::Schedule || row.started_at.is_some() {
            return Ok(false);
        }
        let deadline = self.store.fired(&row.id).await?.and_then(|fired| fired.start_by);
        let Some(deadline) = deadline.filter(|deadline| *deadline < self.clock.now()) else {
            return Ok(false);
        };
        let why = Diagnostic::new(
            "schedule::too_late",
            format!("it was to begin by {deadline}, and waited for longer"),
        )
        .help("raise `start_deadline` of the schedule, or `watch.concurrency` in tidemill.toml");
        Journal::of(&self.project, &self.store, &row.id).fail(row, &why).await?;
        // What waited behind it may start now.
        self.wake.notify_one();
        Ok(true)
    }
}
