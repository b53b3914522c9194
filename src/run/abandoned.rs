//! Runs started by hand whose process died: nobody else would ever end them.
//!
//! A process holds a lock on a file of its run for as long as it carries it out. The system lets go of it however the
//! process ends, so a run without an end whose lock is free is abandoned.

use std::fs::{File, OpenOptions};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use crate::config::Project;
use crate::diagnostic::{Diagnostic, Result};
use crate::run::folder::RunFolder;
use crate::run::journal::Journal;
use crate::run::published::end_if_published;
use crate::store::{RunRow, Store};

/// Held while a run is carried out by hand.
#[derive(Debug)]
pub struct Hold(#[expect(dead_code, reason = "the lock lasts as long as the open file")] File);

/// Takes hold of a run that this process is about to queue.
pub fn hold(folder: &RunFolder) -> Result<Hold> {
    let path = folder.lock();
    if let Some(parent) = path.parent() {
        RunFolder::make(parent)?;
    }
    let failed = |error: std::io::Error| {
        Diagnostic::new("run::lock", format!("cannot lock {}", path.display()))
            .cause(error)
            .help("`.tidemill` must be writable for this user and lie on a local disk")
    };
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(failed)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|error| failed(error.into()))?;
    Ok(Hold(file))
}

/// Ends every run started by hand whose process is gone. Gives how many.
pub async fn bury(project: &Project, store: &Store) -> Result<usize> {
    let mut buried = 0;
    for run in store.unended_by_hand().await? {
        let folder = RunFolder::new(&project.state(), &run.id);
        if is_free(&folder.lock()) {
            // First: on a full disk it is what makes room for the end to be recorded.
            folder.tidy();
            match end(project, store, &run).await {
                // Its process ended it just now, and was not gone.
                Err(error) if error.code() == "store::run_ended" => {}
                done => {
                    done?;
                    buried += 1;
                }
            }
        }
    }
    Ok(buried)
}

async fn end(project: &Project, store: &Store, run: &RunRow) -> Result<()> {
    if end_if_published(project, store, run).await? {
        return Ok(());
    }
    let why = Diagnostic::new("run::interrupted", "the process that carried it out ended before it did")
        .help("run it again; `tidemill logs RUN` shows how far it came");
    Journal::of(project, store, run).fail(run, &why).await
}

fn is_free(lock: &Path) -> bool {
    match File::open(lock) {
        Ok(file) => flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}
