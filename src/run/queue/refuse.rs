//! Runs that end when their turn comes, before anything is spent on them.

use super::Queue;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::trigger::Trigger;
use crate::run::journal::Journal;
use crate::store::{QUARANTINED, RunRow};

impl Queue {
    /// Ends a run that was just taken, when it is not to be carried out. Gives whether it did.
    pub(super) async fn refuse(&self, row: &RunRow) -> Result<bool> {
        if row.cancel_at.is_some() {
            Journal::of(&self.project, &self.store, row).cancel(row).await?;
        } else {
            let why = match self.too_late(row).await? {
                None => self.quarantined(row).await?,
                late => late,
            };
            let Some(why) = why else { return Ok(false) };
            Journal::of(&self.project, &self.store, row).fail(row, &why).await?;
        }
        self.clear(row);
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

    /// Why nothing more is spent on the same work that failed again and again. What a person wants done over is.
    async fn quarantined(&self, row: &RunRow) -> Result<Option<Diagnostic>> {
        let most = self.project.config.watch.quarantine;
        if most == 0 || row.retry_of.is_some() || row.started_at.is_some() {
            return Ok(None);
        }
        let failed = self.store.failed_in_a_row(&row.id, most).await?;
        if failed.is_empty() {
            return Ok(None);
        }
        let stories: Vec<String> = failed.iter().map(story).collect();
        let message =
            format!("the same was run {most} times in a row and failed; nothing more is spent on it");
        Ok(Some(Diagnostic::new(QUARANTINED, message).cause(stories.join("\n")).help(format!(
            "mend the workflow or the input, or run it all the same: `tidemill retry {}`; `tidemill quarantine` lists \
             what is held so",
            row.id
        ))))
    }
}

/// How an earlier run ended, and what it cost.
fn story(run: &RunRow) -> String {
    let cost = run.cost.filter(|cost| cost.usd() > 0.0).map(|cost| format!(", {cost}")).unwrap_or_default();
    let why = run.report.as_ref().map(|report| format!(": {} [{}]", report.message, report.code));
    format!("run {} {}{cost}{}", run.id, run.state, why.unwrap_or_default())
}
