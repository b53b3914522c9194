//! At start: what a process that died has left behind is put right before anything new begins.
//!
//! A file that was being taken goes back into the inbox; a run that was in work waits again; a file whose runs have all
//! ended is put away; what was only there half-way goes.

use std::fs;
use std::path::Path;

use crate::artifact::{self, Destination};
use crate::config::Project;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::input::Fingerprint;
use crate::event::state::{InputState, RunState};
use crate::run::ended;
use crate::run::intake::finish::Putter;
use crate::run::intake::notice::{Notice, Tell};
use crate::run::intake::place;
use crate::run::journal::Journal;
use crate::run::pause::passes;
use crate::run::published::end_if_published;
use crate::run::queue::requeue;
use crate::store::{InputRow, RunRow, Store};
use crate::trigger::drop_folder::links::open;
use crate::trigger::drop_folder::scan::fingerprint;

/// A run that brought the process down this often without coming any further is not tried again.
pub(super) const ATTEMPTS: u32 = 10;

/// Puts everything right.
pub(super) async fn recover(project: &Project, store: &Store, putter: &Putter, tell: &Tell) -> Result<()> {
    // One file that cannot be moved is no reason not to start: it stays where it is and is tried again next time.
    let warn = |done: Result<()>| {
        if let Err(error) = done {
            tell.say(Notice::Warned(error.report()));
        }
    };
    undo_ready(&project.inbox(), store, tell).await?;
    let claimed = store.inputs(&[InputState::Claimed]).await?;
    for row in &claimed {
        warn(complete(project, store, row));
    }
    // One that lost its runs so and lives all the same writes nothing more.
    store.release_all().await?;
    store.forget_drains().await?;
    for run in store.unended().await? {
        go_on(project, store, &run, tell).await?;
    }
    for row in claimed {
        warn(putter.put_away(row.id).await);
    }
    for row in store.inputs(&[InputState::Duplicate]).await? {
        if row.claimed_path.is_some() && row.parcel == row.id {
            warn(putter.put_duplicates_away(row.id).await);
        }
    }
    remove_empty(&store.folder().join("claimed"));
    // Some have ended only here.
    ended::tidy(project, store).await?;
    Ok(())
}

/// Removes folders whose file was put away or back by a process that was killed right then.
fn remove_empty(claimed: &Path) {
    for entry in fs::read_dir(claimed).into_iter().flatten().flatten() {
        // One that holds a file is not removed by this.
        let _ = fs::remove_dir(entry.path());
    }
}

/// Puts files back that were on their way out of the inbox and have no run yet.
pub(super) async fn undo_ready(inbox: &Path, store: &Store, tell: &Tell) -> Result<()> {
    for row in store.inputs(&[InputState::Ready]).await? {
        match undo(inbox, store, &row).await {
            Err(error) if passes(&error) => return Err(error),
            Err(error) => tell.say(Notice::Warned(error.report())),
            Ok(()) => {}
        }
    }
    Ok(())
}

async fn undo(inbox: &Path, store: &Store, row: &InputRow) -> Result<()> {
    let home = inbox.join(row.path.as_path());
    if let Some(claimed) = row.claimed_path.as_ref().map(|path| store.folder().join(path)) {
        let failed = |error: std::io::Error| {
            let message = format!("cannot put {} back into the inbox", row.path.display());
            Diagnostic::new("watch::unmovable", message).cause(error).help(format!(
                "its folder must be writable for this user; it is kept as {}",
                claimed.display()
            ))
        };
        let stands = place::stands(&home, row.fingerprint) || leads_to(&home, row.fingerprint, &claimed);
        if stands && claimed.symlink_metadata().is_ok() {
            // Both: it was copied, and the original is still there.
            fs::remove_file(&claimed).map_err(failed)?;
        } else if claimed.symlink_metadata().is_ok() {
            place::put_back(&claimed, inbox, row.path.as_path(), &format!("again-{}", row.id))
                .map_err(failed)?;
        }
        if let Some(folder) = claimed.parent() {
            // With what is left of a copy that was never finished.
            let _ = fs::remove_dir_all(folder);
        }
    }
    let reason = "tidemill ended while it was being claimed; it waits again";
    store.put_back(row.id, InputState::Settling, reason).await
}

/// Whether a link leads to that version of a file, of which the claimed one is a copy. Any other link came later, and
/// one to the claimed file itself is no second one.
fn leads_to(home: &Path, version: Fingerprint, claimed: &Path) -> bool {
    let is =
        |path: &Path| fs::metadata(path).is_ok_and(|data| data.is_file() && fingerprint(&data) == version);
    home.is_symlink() && is(home) && !is(claimed)
}

/// The runs exist, and the move may not have reached the disk before the power went.
fn complete(project: &Project, store: &Store, row: &InputRow) -> Result<()> {
    let Some(claimed) = row.claimed_path.as_ref().map(|path| store.folder().join(path)) else {
        return Ok(());
    };
    let home = project.inbox().join(row.path.as_path());
    if claimed.symlink_metadata().is_ok() || !place::stands(&home, row.fingerprint) {
        return Ok(());
    }
    let taken = if row.kept {
        open(&home).and_then(|original| place::copy(original, &claimed, row.fingerprint))
    } else {
        place::relocate(&home, &claimed)
    };
    taken.map_err(|error| {
        Diagnostic::new("watch::unmovable", format!("cannot take {}", row.path.display()))
            .cause(error)
            .help("the inbox and .tidemill must be writable for this user")
    })
}

async fn go_on(project: &Project, store: &Store, run: &RunRow, tell: &Tell) -> Result<()> {
    if end_if_published(project, store, run).await? {
        return Ok(());
    }
    // One that brings the process down before it does anything still counts as waiting.
    if run.attempts >= ATTEMPTS {
        let destination = Destination::of(project.outbox(), &run.workflow, &run.inputs, &run.id);
        artifact::forget_staged(&destination, &run.id);
        let message = format!("interrupted {} times without coming any further", run.attempts);
        let why = Diagnostic::new("run::interrupted", message)
            .help("tidemill or the machine went down each time this run was in work; `tidemill logs` shows how far it came");
        return Journal::of(project, store, run).fail(run, &why).await;
    }
    if run.state == RunState::Queued {
        return Ok(());
    }
    requeue(store, &run.id, "tidemill ended while it was in work; it goes on").await?;
    tell.say(Notice::Requeued(run.id.clone()));
    Ok(())
}
