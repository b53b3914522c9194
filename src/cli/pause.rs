//! `tidemill pause` and `tidemill resume`: whether new runs begin.

use serde_json::json;

use crate::cli::{Context, Exit};
use crate::diagnostic::Result;
use crate::run::socket;
use crate::script;
use crate::store::{Paused, Store};

/// Arguments of `tidemill pause` and `tidemill resume`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only runs of this workflow
    workflow: Option<String>,
    /// A JSON document: what is paused then
    #[arg(long)]
    json: bool,
}

/// Lets no new run begin. What is in work goes on, and files are taken in.
pub async fn pause(context: &Context, args: Args) -> Result<Exit> {
    let project = context.project()?;
    if let Some(workflow) = &args.workflow {
        script::find(&project, workflow).await?;
    }
    let store = Store::open(&project.state()).await?;
    store.pause(args.workflow.as_deref()).await?;
    socket::look(&project).await;
    told(context, &store, args.json).await
}

/// Lets runs begin again.
pub async fn resume(context: &Context, args: Args) -> Result<Exit> {
    let project = context.project()?;
    let store = Store::open(&project.state()).await?;
    if !store.resume(args.workflow.as_deref()).await? {
        context.screen.talk("it was not paused");
    }
    socket::look(&project).await;
    told(context, &store, args.json).await
}

async fn told(context: &Context, store: &Store, as_json: bool) -> Result<Exit> {
    let paused = store.paused().await?;
    context.screen.line(if as_json { super::json(&json!(paused))? } else { words(&paused) });
    Ok(Exit::Succeeded)
}

/// What is paused, in a sentence.
pub(super) fn words(paused: &Paused) -> String {
    let workflows: Vec<&str> = paused.workflows.iter().map(String::as_str).collect();
    match (paused.all, workflows.as_slice()) {
        (true, _) => "paused: no new run begins until `tidemill resume`".to_owned(),
        (false, []) => "nothing is paused".to_owned(),
        (false, names) => {
            format!("paused: no new run of {} begins until `tidemill resume`", names.join(", "))
        }
    }
}
