//! Stopping a run from another process.

use std::time::Duration;

use crate::clock::Clock;
use crate::config::Project;
use crate::diagnostic::Result;
use crate::event::id::RunId;
use crate::run::folder::RunFolder;
use crate::run::intake::Lock;
use crate::run::intake::finish::Putter;
use crate::run::intake::notice::Tell;
use crate::run::journal::Journal;
use crate::run::published::end_if_published;
use crate::store::Store;

/// How often a process that carries out a run by hand looks whether it is to stop.
const LOOK: Duration = Duration::from_secs(1);

/// Waits until somebody wants the run to stop.
pub async fn asked(store: &Store, run: &RunId, clock: &dyn Clock) {
    loop {
        clock.sleep(LOOK).await;
        // A store that cannot be read now may be in a second.
        if let Ok(Some(row)) = store.run(run).await
            && row.cancel_at.is_some()
        {
            return;
        }
    }
}

/// Ends a run of the queue while no daemon works: whoever holds the project's lock may.
pub async fn end_alone(project: &Project, store: &Store, _lock: &Lock, run: &RunId) -> Result<()> {
    store.release_all().await?;
    let Some(row) = store.run(run).await?.filter(|row| !row.state.is_end()) else { return Ok(()) };
    if !end_if_published(project, store, &row).await? {
        Journal::of(project, store, &row).cancel(&row).await?;
    }
    RunFolder::new(&project.state(), run).tidy_after(&row);
    if let Some(input) = row.input {
        Putter::new(project.clone(), store.clone(), Tell::default()).put_away(input).await?;
    }
    Ok(())
}
