//! `tidemill runs`: a list.

use crate::cli::state::named;
use crate::cli::{Context, Exit};
use crate::diagnostic::Result;
use crate::event::input::printable;
use crate::event::state::RunState;
use crate::store::{RunFilter, Store};

/// Arguments of `tidemill runs`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only runs of this workflow
    #[arg(long)]
    workflow: Option<String>,
    /// Only runs in this state, e.g. succeeded or failed
    #[arg(long)]
    state: Option<String>,
    /// At most this many, the newest first
    #[arg(long, default_value_t = 20)]
    limit: u32,
    /// A JSON list
    #[arg(long)]
    json: bool,
}

/// Carries it out.
pub async fn run(context: &Context, args: Args) -> Result<Exit> {
    let project = context.project()?;
    let state =
        args.state.as_deref().map(|word| named(word, &RunState::ALL, RunState::as_str)).transpose()?;
    let store = Store::open(&project.state()).await?;
    let filter = RunFilter { workflow: args.workflow, state, limit: Some(args.limit) };
    let rows = store.runs(&filter).await?;
    if args.json {
        context.screen.line(super::json(&rows)?);
        return Ok(Exit::Succeeded);
    }
    if rows.is_empty() {
        context.screen.talk("no runs yet; `tidemill run WORKFLOW FILE` or `tidemill watch` makes some");
    }
    for row in rows {
        let input = row.inputs.first().map(|input| input.path.display()).unwrap_or_default();
        let cost = row.cost.filter(|cost| cost.usd() > 0.0).map(|cost| cost.to_string()).unwrap_or_default();
        let again = row.waits_for().map(|again| format!("  {}", printable(again.to_string().as_ref())));
        let again = again.unwrap_or_default();
        let line = format!("{}  {:<10}  {:<24} {cost:>8}  {input}{again}", row.id, row.state, row.workflow);
        context.screen.line(line.trim_end());
    }
    Ok(Exit::Succeeded)
}
