//! Runs that end when their turn comes, before anything is spent on them.

use super::Queue;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::trigger::Trigger;
use crate::run::journal::Journal;
use crate::store::RunRow;

impl Queue {
    /// Ends a run that was just taken, when it is not to be carried out. Gives whether it did.
    pub(super) async fn refuse(&self, row: &RunRow) -> Result<bool> {
        if row.cancel_at.is_some() {
            Journal::of(&self.project, &self.store, row).cancel(row).await?;
        } else if let Some(why) = self.too_late(row).await? {
            Journal::of(&self.project, &self.store, row).fail(row, &why).await?;
        } else {
            return Ok(false);
        }
        // Its file is to be put away, and what waited behind it may start now.
        self.wake.notify_one();
        Ok(true)
    }

    /// Why a run of a schedule is not begun that waited until its deadline. One that has begun once goes on, and one that
    /// a person wants done over is in time.
    async fn too_late(&self, row: &RunRow) -> Result<Option<Diagnostic>> {
        if row.trigger != Trigger::Schedule || row.started_at.is_some() || row.retry_of.is_some() {
            return Ok(None);
        }
        let deadline = self.store.fired(&row.id).await?.and_then(|fired| fired.start_by);
        Ok(deadline.filter(|deadline| *deadline < self.clock.now()).map(|deadline| {
            Diagnostic::new(
                "schedule::too_late",
                format!("it was to begin by {deadline}, and waited for longer"),
            )
            .help("raise `start_deadline` of the schedule, or `watch.concurrency` in tidemill.toml")
        }))
    }
}
