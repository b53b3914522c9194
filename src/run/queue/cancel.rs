//! Runs that people do not want any more.

use super::{Queue, Work};
use crate::diagnostic::Result;
use crate::event::state::RunState;
use crate::run::queue::settle::Left;

impl Queue {
    /// Tells runs in work to stop that are to, and ends those that wait. One that does not stop in time is let go of.
    pub(super) async fn cancel_asked(&self, work: &mut Work) -> Result<()> {
        let now = self.clock.elapsed();
        for asked in self.store.to_cancel().await?.into_iter().filter(|run| !run.by_hand) {
            if let Some(running) = work.running.values_mut().find(|running| running.row.id == asked.id) {
                match running.told {
                    // One that publishes has all but ended, and what it publishes would stand there all the same.
                    Some(told)
                        if now.saturating_sub(told) >= Self::GRACE && asked.state != RunState::Publishing =>
                    {
                        running.abort.abort();
                    }
                    Some(_) => {}
                    None => {
                        running.told = Some(now);
                        running.stop.cancel();
                    }
                }
            } else if let Some(row) = self.store.take(&asked.id, &self.holder).await? {
                let refused = self.refuse(&row).await;
                work.open.push(Left::new(row, refused.err()));
            }
        }
        Ok(())
    }
}
