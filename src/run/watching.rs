//! What a daemon needs: the routes of every workflow.

use crate::config::Project;
use crate::diagnostic::{Diagnostic, Result};
use crate::run::intake::WorkflowRoute;
use crate::run::route::route;
use crate::script;
use crate::store::Store;

/// The routes of all workflows, their scripts pinned. Fails with every mistake of every script at once.
pub async fn routes(project: &Project, store: &Store, model: Option<&str>) -> Result<Vec<WorkflowRoute>> {
    let checked = script::check(project, &[]).await;
    let mistakes: Vec<Diagnostic> =
        checked.diagnostics.into_iter().filter(|diagnostic| !diagnostic.is_warning()).collect();
    if !mistakes.is_empty() {
        return Err(Diagnostic::new("script::mistakes", "the project's scripts have mistakes")
            .help("nothing is watched until they are mended; `tidemill check` shows them again")
            .related(mistakes));
    }
    let mut routes = Vec::new();
    for workflow in &checked.workflows {
        let loaded = script::load(project, &workflow.file).await?;
        routes.push(route(project, store, &loaded, model).await?);
    }
    Ok(routes)
}
