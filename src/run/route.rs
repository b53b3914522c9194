//! Which dropped file goes to which workflow, pinned to the scripts as they are now.

use crate::config::Project;
use crate::diagnostic::Result;
use crate::event::id::Digest;
use crate::run::intake::WorkflowRoute;
use crate::run::models;
use crate::script::{Bundle, Loaded};
use crate::store::Store;

/// Keeps a loaded script in the store, so that its runs can be made from exactly this text.
pub async fn pin(store: &Store, bundle: &Bundle) -> Result<Digest> {
    let text = serde_json::to_vec(bundle).map_err(|error| {
        crate::diagnostic::Diagnostic::new("run::pin", format!("a script cannot be kept: {error}"))
    })?;
    store.blobs().put(text).await
}

/// The route of a loaded workflow. `model` replaces the one it names.
pub async fn route(
    project: &Project,
    store: &Store,
    loaded: &Loaded,
    model: Option<&str>,
) -> Result<WorkflowRoute> {
    let workflow = &loaded.workflow;
    let model = model.unwrap_or(&workflow.agent.model).to_owned();
    models::require_price(project, &model, &workflow.limits)?;
    Ok(WorkflowRoute {
        workflow: workflow.name.clone(),
        drops: workflow.triggers.clone(),
        schedules: workflow.schedules.clone(),
        model,
        bundle: pin(store, &loaded.bundle).await?,
        sandbox: workflow.sandbox,
    })
}
