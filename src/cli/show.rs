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
    let events = events(&store, &row.id).await?;
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
    };
    summary(&facts, &Outline::of(events))
}

/// Every event of a run.
pub async fn events(store: &Store, run: &RunId) -> Result<Vec<Event>> {
    let mut events: Vec<Event> = Vec::new();
    loop {
        let page = store.events(run, events.last().map_or(0, |event| event.seq), 1_000).await?;
        if page.is_empty() {
            return Ok(events);
        }
        events.extend(page);
    }
}
