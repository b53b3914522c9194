//! Doing a run over: a new one on the same input, which waits in the queue.
//!
//! The input is taken from wherever it still stands, and only if it is the same to the byte.

use std::path::{Path, PathBuf};

use crate::clock::Clock;
use crate::config::Project;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::{Digest, RunId};
use crate::event::input::{InputFile, RawPath};
use crate::run::folder::RunFolder;
use crate::run::inputs;
use crate::run::route::route;
use crate::script;
use crate::store::{NewRun, RunRow, Store};

/// By which script a run is done over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// As it stands in the workflows folder now, with the model it names.
    Current,
    /// The one the run was pinned to.
    Same,
}

/// Queues a run that does `over` once more. Gives its id.
///
/// Errors: `retry::not_ended`, `retry::input_gone`, `retry::input_changed`, `retry::script_gone`, and what loading the
/// script says.
pub async fn retry(
    project: &Project,
    store: &Store,
    clock: &dyn Clock,
    over: &RunRow,
    by: By,
) -> Result<RunId> {
    if !over.state.is_end() {
        let message = format!("run {} has not ended: it is {}", over.id, over.state);
        return Err(Diagnostic::new("retry::not_ended", message)
            .help("wait for its end, or stop it first with `tidemill cancel`"));
    }
    let (script, model) = pinned(project, store, over, by).await?;
    let at = clock.now();
    let id = store.fresh_id(at).await?;
    let folder = RunFolder::new(&project.state(), &id);
    for (index, input) in over.inputs.iter().enumerate() {
        let places = places(project, store, over, input, index).await?;
        take(&places, input, &folder.input(index)).inspect_err(|_| folder.tidy())?;
    }
    let new = NewRun {
        inputs: over.inputs.clone(),
        params: over.params.clone(),
        by_hand: false,
        retry_of: Some(over.id.clone()),
        ..NewRun::new(id.clone(), &over.workflow, over.trigger, script, &model, at)
    };
    store.queue_run(new).await.inspect_err(|_| folder.tidy())?;
    Ok(id)
}

/// The script and the model.
async fn pinned(project: &Project, store: &Store, over: &RunRow, by: By) -> Result<(Digest, String)> {
    match by {
        By::Current => {
            let loaded = script::find(project, &over.workflow).await?;
            let route = route(project, store, &loaded, None).await?;
            Ok((route.bundle, route.model))
        }
        By::Same => {
            if !store.blobs().path(&over.script).is_file() {
                let message = format!("the script that run {} was pinned to is not kept any more", over.id);
                return Err(Diagnostic::new("retry::script_gone", message)
                    .help("leave `--same-script` out to use the script as it is now"));
            }
            Ok((over.script.clone(), over.model.clone()))
        }
    }
}

/// Where a copy of the input may stand, the likeliest first.
async fn places(
    project: &Project,
    store: &Store,
    over: &RunRow,
    input: &InputFile,
    index: usize,
) -> Result<Vec<PathBuf>> {
    let mut places = vec![RunFolder::new(&project.state(), &over.id).input(index)];
    places.extend(in_ledger(project, store, over, input).await?);
    // A file that was dropped may have been dropped again; one named by hand stands where it was named.
    let base = if over.by_hand { project.root.clone() } else { project.inbox() };
    places.push(base.join(input.path.as_path()));
    // What a retry works on was put away for the run it does over.
    let mut before = over.retry_of.clone();
    while let Some(run) = before {
        let Some(row) = store.run(&run).await? else { break };
        places.push(RunFolder::new(&project.state(), &run).input(index));
        places.extend(in_ledger(project, store, &row, input).await?);
        before = row.retry_of;
    }
    Ok(places)
}

/// Where the ledger says that a file stands which was dropped for `run`: one of several, where it is a batch.
async fn in_ledger(
    project: &Project,
    store: &Store,
    run: &RunRow,
    input: &InputFile,
) -> Result<impl Iterator<Item = PathBuf>> {
    let rows = match run.input {
        Some(first) => store.parcel(first).await?,
        None => Vec::new(),
    };
    let row = rows.into_iter().find(|row| row.path == input.path);
    let (claimed, put_away) = row.map_or((None, None), |row| (row.claimed_path, row.final_path));
    let claimed = claimed.map(|path| store.folder().join(path));
    Ok(claimed.into_iter().chain(put_away.map(|path| project.root.join(path))))
}

/// Copies the input from the first place where it stands unchanged.
fn take(places: &[PathBuf], input: &InputFile, target: &Path) -> Result<()> {
    let shown = input.path.display();
    let mut changed = None;
    for place in places.iter().filter(|place| place.is_file()) {
        let (digest, _) = inputs::copy(place, target)?;
        if digest == input.digest {
            return Ok(());
        }
        changed = Some(place);
    }
    if let Some(place) = changed {
        let message =
            format!("the input {shown} is not what it was: {} has changed", RawPath::new(place).display());
        return Err(Diagnostic::new("retry::input_changed", message)
            .help("drop the file as it is now into the inbox, or name it to `tidemill run`"));
    }
    let looked: Vec<String> = places.iter().map(|place| RawPath::new(place).display()).collect();
    Err(Diagnostic::new("retry::input_gone", format!("the input {shown} is not there any more"))
        .help(format!("put it back to one of {}", looked.join(", "))))
}
