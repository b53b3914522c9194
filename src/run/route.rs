//! Which dropped file goes to which workflow, pinned to the scripts as they are now.

use crate::config::Project;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::Digest;
use crate::run::intake::WorkflowRoute;
use crate::run::models;
use crate::script::{Bundle, Loaded};
use crate::store::Store;

/// Keeps a loaded script in the store, so that its runs can be made from exactly this text. Gives its version.
pub async fn pin(store: &Store, bundle: &Bundle) -> Result<Digest> {
    store.blobs().put(text(bundle)?).await
}

/// The version of a script: the hash under which [`pin`] keeps it.
pub fn version(bundle: &Bundle) -> Result<Digest> {
    text(bundle).map(Digest::of)
}

fn text(bundle: &Bundle) -> Result<Vec<u8>> {
    serde_json::to_vec(bundle)
        .map_err(|error| Diagnostic::new("run::pin", format!("a script cannot be kept: {error}")))
}

/// What [`pin`] keeps under a version. For errors: what is pinned to it, e.g. `this run`, and what to do.
pub async fn pinned(store: &Store, version: &Digest, what: &str, help: &str) -> Result<Bundle> {
    /// Bytes of a script with everything it requires; more is no script.
    const LARGEST: u64 = 64 << 20;
    let bytes = store.blobs().read(version, LARGEST).await?;
    serde_json::from_slice(&bytes).map_err(|error| {
        Diagnostic::new("run::pin", format!("the script {what} is pinned to cannot be read: {error}"))
            .help(help)
    })
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
    let bundle = pin(store, &loaded.bundle).await?;
    store.know_targets(&bundle, &workflow.notify).await?;
    Ok(WorkflowRoute {
        workflow: workflow.name.clone(),
        drops: workflow.triggers.clone(),
        schedules: workflow.schedules.clone(),
        webhooks: workflow.webhooks.clone(),
        model,
        bundle,
        sandbox: workflow.sandbox,
        queueing: workflow.queueing,
    })
}
