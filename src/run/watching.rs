//! What a daemon needs: the routes of every workflow.

use crate::config::Project;
use crate::diagnostic::{Diagnostic, Result};
use crate::run::deliveries;
use crate::run::intake::WorkflowRoute;
use crate::run::models::env;
use crate::run::route::route;
use crate::script;
use crate::store::Store;
use crate::workflow::Workflow;

/// All workflows of the project. Fails with every mistake of every script at once; `help` says what that means.
pub async fn workflows(project: &Project, help: &str) -> Result<Vec<Workflow>> {
    let checked = script::check(project, &[]).await;
    let mistakes: Vec<Diagnostic> =
        checked.diagnostics.into_iter().filter(|diagnostic| !diagnostic.is_warning()).collect();
    if mistakes.is_empty() {
        return Ok(checked.workflows);
    }
    Err(Diagnostic::new("script::mistakes", "the project's scripts have mistakes")
        .help(help)
        .related(mistakes))
}

/// The routes of all workflows, their scripts pinned.
pub async fn routes(project: &Project, store: &Store, model: Option<&str>) -> Result<Vec<WorkflowRoute>> {
    let help = "nothing is watched until they are mended; `tidemill check` shows them again";
    let mut routes = Vec::new();
    for workflow in &workflows(project, help).await? {
        deliveries::check(&workflow.name, &workflow.notify, &env)?;
        let loaded = script::load(project, &workflow.file).await?;
        routes.push(route(project, store, &loaded, model).await?);
    }
    Ok(routes)
}
