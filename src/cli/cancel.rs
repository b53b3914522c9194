//! `tidemill cancel`: stops one run, whoever carries it out.

use std::time::Duration;

use serde_json::json;

use crate::cli::{Context, Exit};
use crate::clock::{Clock as _, SystemClock};
use crate::diagnostic::Result;
use crate::run::intake::Daemon;
use crate::run::{abandoned, cancel, socket};
use crate::store::{RunRow, Store};

/// Arguments of `tidemill cancel`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The run's id, or enough of it
    run: String,
    /// A JSON document
    #[arg(long)]
    json: bool,
}

/// Whoever carries it out looks every second, and removing a sandbox takes a moment.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often its end is looked for.
const LOOK: Duration = Duration::from_millis(100);

/// Carries it out.
pub async fn run(context: &Context, args: Args) -> Result<Exit> {
    let project = context.project()?;
    let store = Store::open(&project.state()).await?;
    let row = store.resolve(&args.run).await?;
    store.cancel(&row.id).await?;
    if row.by_hand {
        // One whose process is gone is nobody's any more.
        abandoned::bury(&project, &store).await?;
    } else if let Ok(lock) = Daemon::lock(&project) {
        cancel::end_alone(&project, &store, &lock, &row.id).await?;
    } else {
        socket::look(&project).await;
    }
    let row = end_of(&store, row).await?;
    if args.json {
        context.screen.line(super::json(&json!({ "run": row.id, "state": row.state }))?);
    } else if row.state.is_end() {
        context.screen.line(format!("{}  {}", row.id, row.state));
    } else {
        context.screen.line(format!("{}  {}, told to stop", row.id, row.state));
        context.screen.talk("it has not stopped yet; `tidemill show` says when it has");
    }
    Ok(if row.state.is_end() { Exit::Succeeded } else { Exit::Failed })
}

/// The run when it has ended, or after a while.
async fn end_of(store: &Store, mut row: RunRow) -> Result<RunRow> {
    let clock = SystemClock::new();
    loop {
        row = store.run(&row.id).await?.unwrap_or(row);
        if row.state.is_end() || clock.elapsed() >= PATIENCE {
            return Ok(row);
        }
        clock.sleep(LOOK).await;
    }
}
