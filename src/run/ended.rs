//! What runs have left that have ended, and whose process was killed before it could tidy up.

use std::fs;

use crate::config::Project;
use crate::diagnostic::Result;
use crate::event::id::RunId;
use crate::run::folder::RunFolder;
use crate::sandbox::Awaited;
use crate::store::Store;

/// Removes what ended runs needed only while they worked; what was kept aside stays. Gives how many runs had some.
pub async fn tidy(project: &Project, store: &Store) -> Result<usize> {
    let Ok(entries) = fs::read_dir(project.state().join("runs")) else {
        // Nothing has run yet.
        return Ok(0);
    };
    let mut tidied = 0;
    for entry in entries.flatten() {
        let Some(id) = entry.file_name().to_str().and_then(RunId::parse) else {
            continue;
        };
        let folder = RunFolder::new(&project.state(), &id);
        let ended = store.run(&id).await?.filter(|run| run.state.is_end());
        if let Some(run) = ended.filter(|run| folder.is_untidy_after(run)) {
            folder.tidy_after(&run);
            tidied += 1;
        }
    }
    Ok(tidied)
}

/// Lets go of sandboxes that wait for a run which has ended, or is not known any more: the next sweep takes them. Gives
/// how many those are.
pub async fn let_go(project: &Project, store: &Store) -> Result<usize> {
    let awaited = Awaited::new(&project.state());
    let mut gone = 0;
    for (name, run) in awaited.all()? {
        if store.run(&run).await?.is_none_or(|run| run.state.is_end()) {
            awaited.forget(&name);
            gone += 1;
        }
    }
    Ok(gone)
}
