//! `tidemill retry`: runs once more, in the queue.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::json;

use crate::cli::state::named;
use crate::cli::{Context, Exit};
use crate::clock::{Clock as _, SystemClock};
use crate::diagnostic::{Diagnostic, Result};
use crate::event::state::RunState;
use crate::run::intake::Daemon;
use crate::run::retry::{By, retry};
use crate::run::socket;
use crate::store::{RunRow, Store};
use crate::workflow::units;

/// Arguments of `tidemill retry`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The run's id, or enough of it
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    run: Option<String>,
    /// Every run that failed and was not done over yet
    #[arg(long)]
    all: bool,
    /// With --all: only runs that ended within this time, e.g. 24h
    #[arg(long, value_name = "TIME", requires = "all", value_parser = duration)]
    since: Option<Duration>,
    /// With --all: only runs of this workflow
    #[arg(long, requires = "all")]
    workflow: Option<String>,
    /// With --all: runs in these states, e.g. failed,rejected
    #[arg(long, value_delimiter = ',', requires = "all", default_value = "failed")]
    state: Vec<String>,
    /// Use the script the run was pinned to instead of the current one
    #[arg(long)]
    same_script: bool,
    /// A JSON list
    #[arg(long)]
    json: bool,
}

/// Carries it out. What cannot be done over is told, and the others are.
pub async fn run(context: &Context, args: Args) -> Result<Exit> {
    let project = context.project()?;
    let store = Store::open(&project.state()).await?;
    let clock = SystemClock::new();
    let by = if args.same_script { By::Same } else { By::Current };
    let chosen = chosen(&store, &args, &clock).await?;
    if chosen.is_empty() {
        context.screen.talk("no such run is left to be done over");
    }
    let (mut made, mut exit) = (Vec::new(), Exit::Succeeded);
    for over in &chosen {
        match retry(&project, &store, &clock, over, by).await {
            Ok(run) => {
                if !args.json {
                    context.screen.line(format!("{run}  {} once more", over.id));
                }
                made.push(json!({ "run": run, "retry_of": over.id }));
            }
            Err(error) if args.all => {
                context.screen.talk(format!("run {} stays as it is:", over.id));
                context.screen.diagnostic(&error);
                exit = Exit::Failed;
            }
            Err(error) => return Err(error),
        }
    }
    if args.json {
        context.screen.line(super::json(&made)?);
    }
    if !made.is_empty() {
        socket::look(&project).await;
        context.screen.talk(if Daemon::watches(&project) {
            "queued; the `tidemill watch` of this project carries it out"
        } else {
            "queued; nobody watches this project now, `tidemill watch` carries it out"
        });
    }
    Ok(exit)
}

async fn chosen(store: &Store, args: &Args, clock: &SystemClock) -> Result<Vec<RunRow>> {
    if let Some(run) = &args.run {
        return Ok(vec![store.resolve(run).await?]);
    }
    let mut states = Vec::new();
    for word in &args.state {
        let state = named(word, &RunState::ALL, RunState::as_str)?;
        if !state.is_end() {
            return Err(Diagnostic::new(
                "usage::unknown_state",
                format!("runs that are {state} have not ended"),
            )
            .help("name states in which runs end, e.g. failed, rejected, exhausted"));
        }
        states.push(state);
    }
    let since = args.since.and_then(|since| {
        let since = SignedDuration::try_from(since).ok()?;
        clock.now().checked_sub(since).ok()
    });
    store.to_retry(&states, args.workflow.as_deref(), since).await
}

fn duration(text: &str) -> std::result::Result<Duration, String> {
    units::duration(text)
}
