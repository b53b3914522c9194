//! What somebody said about the queue and may have forgotten.

use crate::cli::doctor::finding::Finding;
use crate::cli::pause;
use crate::config::Project;
use crate::store::Store;

/// Whether runs may begin. A project without a database has nothing to say.
pub(super) async fn examine(project: &Project) -> Option<Finding> {
    if !project.state().join(Store::FILE).exists() {
        return None;
    }
    let paused = match Store::open(&project.state()).await {
        Ok(store) => store.paused().await,
        Err(diagnostic) => Err(diagnostic),
    };
    Some(match paused {
        Ok(paused) if paused.is_empty() => Finding::ok("queue", "runs may begin"),
        Ok(paused) => Finding::warn("queue", pause::words(&paused), "`tidemill resume` lets them begin"),
        Err(diagnostic) => Finding::of("queue", &diagnostic),
    })
}
