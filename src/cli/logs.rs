//! `tidemill logs`: the events of one run.

use std::time::Duration;

use crate::cli::{Context, Exit};
use crate::diagnostic::Result;
use crate::event::payload::Payload;
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
            show(context, &args, &store, event).await?;
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

async fn show(context: &Context, args: &Args, store: &Store, event: &Event) -> Result<()> {
    if args.json {
        context.screen.line(super::json(event)?);
        return Ok(());
    }
    let event = if args.full { whole(store, event).await? } else { event.clone() };
    if let Some(text) = describe(&event, if args.full { Detail::Full } else { Detail::Short }) {
        context.screen.line(format!("{} {text}", event.at.strftime("%H:%M:%S")));
    }
    Ok(())
}

/// The event with the texts that were kept elsewhere: a command's whole output in place of its head and tail.
async fn whole(store: &Store, event: &Event) -> Result<Event> {
    let mut event = event.clone();
    match &mut event.what {
        What::ToolEnded { output, whole, .. } => {
            let kept = whole.take().unwrap_or_else(|| output.clone());
            *output = Payload::Inline(store.text(&kept).await?);
        }
        What::ModelResponded { text, .. } | What::Said { text, .. } => {
            *text = Payload::Inline(store.text(text).await?);
        }
        _ => {}
    }
    Ok(event)
}
