//! `tidemill logs`: the events of one run.

use std::time::Duration;

use crate::cli::{Context, Exit};
use crate::diagnostic::Result;
use crate::event::{Event, What};
use crate::report::line::{Detail, describe};
use crate::store::Store;

/// Arguments of `tidemill logs`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The run's id, or enough of it
    run: String,
    /// Go on until the run ends
    #[arg(short, long)]
    follow: bool,
    /// One JSON document per event
    #[arg(long)]
    json: bool,
    /// Do not shorten long texts
    #[arg(long)]
    full: bool,
}

/// Another process appends to the same database; this is how often it is asked for more.
const POLL: Duration = Duration::from_millis(250);
/// Events read at once.
const PAGE: u32 = 500;

/// Carries it out.
pub async fn run(context: &Context, args: Args) -> Result<Exit> {
    let project = context.project()?;
    let store = Store::open(&project.state()).await?;
    let row = store.resolve(&args.run).await?;
    let mut seen = 0;
    loop {
        let events = store.events(&row.id, seen, PAGE).await?;
        for event in &events {
            show(context, &args, event)?;
            seen = event.seq;
            if matches!(event.what, What::RunEnded { .. }) {
                return Ok(Exit::Succeeded);
            }
        }
        if !events.is_empty() {
            continue;
        }
        if !args.follow {
            return Ok(Exit::Succeeded);
        }
        tokio::time::sleep(POLL).await;
    }
}

fn show(context: &Context, args: &Args, event: &Event) -> Result<()> {
    if args.json {
        context.screen.line(super::json(event)?);
    } else if let Some(text) = describe(event, if args.full { Detail::Full } else { Detail::Short }) {
        context.screen.line(format!("{} {text}", event.at.strftime("%H:%M:%S")));
    }
    Ok(())
}
