//! `tidemill show`: one run on one screen.

use serde_json::json;

use crate::cli::{Context, Exit};
use crate::diagnostic::Result;
use crate::event::Event;
use crate::event::id::RunId;
use crate::report::fold::Outline;
use crate::report::summary::{Facts, summary};
use crate::store::{RunRow, Store};

/// Arguments of `tidemill show`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The run's id, or enough of it
    run: String,
    /// One JSON document: the run and its events
    #[arg(long)]
    json: bool,
}

/// Carries it out.
pub async fn run(context: &Context, args: Args) -> Result<Exit> {
    let project = context.project()?;
    let store = Store::open(&project.state()).await?;
    let row = store.resolve(&args.run).await?;
    let events = store.all_events(&row.id).await?;
    if args.json {
        context.screen.line(super::json(&json!({ "run": row, "events": events }))?);
    } else {
        context.screen.line(text(&row, &events));
    }
    Ok(Exit::Succeeded)
}

/// The run's summary.
pub fn text(row: &RunRow, events: &[Event]) -> String {
    let facts = Facts {
        run: row.id.as_str(),
        workflow: &row.workflow,
        state: row.state,
        model: &row.model,
        turns: row.turns,
        usage: row.usage,
        cost: row.cost,
        report: row.report.as_ref(),
        waits_for: row.waits_for(),
        retry_of: row.retry_of.as_ref().map(RunId::as_str),
    };
    summary(&facts, &Outline::of(events))
}
