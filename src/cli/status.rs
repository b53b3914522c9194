//! `tidemill status`: who watches the project, what is in work, what waits.

use std::fmt::Write as _;

use crate::cli::{Context, Exit, pause};
use crate::diagnostic::Result;
use crate::run::intake::{Daemon, Lock};
use crate::run::socket;
use crate::run::status::{Status, status};
use crate::store::Store;

/// Arguments of `tidemill status`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A JSON document
    #[arg(long)]
    json: bool,
}

/// Carries it out. What the daemon does not answer stands in the database.
pub async fn run(context: &Context, args: Args) -> Result<Exit> {
    let project = context.project()?;
    let status = if let Some(status) = socket::ask_status(&project).await {
        status
    } else {
        let store = Store::open(&project.state()).await?;
        let holder = Lock::holder(&project.state()).filter(|_| Daemon::watches(&project));
        status(&store, holder.as_ref()).await?
    };
    context.screen.line(if args.json { super::json(&status)? } else { words(&status) });
    Ok(Exit::Succeeded)
}

fn words(status: &Status) -> String {
    let mut text = match &status.daemon {
        Some(daemon) => format!("watched by process {} since {:.0}", daemon.pid, daemon.since),
        None => "nobody watches this project".to_owned(),
    };
    let _ = write!(text, "\nin work: {}", status.in_work.len());
    for run in &status.in_work {
        let _ = write!(text, "\n  {}  {:<10}  {}", run.run, run.state, run.workflow);
    }
    let _ = write!(text, "\nwaiting: {}", status.waiting);
    if !status.paused.is_empty() {
        let _ = write!(text, "\n{}", pause::words(&status.paused));
    }
    text
}
