//! `tidemill drain`: the daemon takes nothing new, and ends when its runs have.

use std::time::Duration;

use crate::cli::{Context, Exit};
use crate::clock::{Clock as _, SystemClock};
use crate::diagnostic::{Diagnostic, Result};
use crate::run::intake::{Daemon, Lock};
use crate::run::socket;
use crate::store::Store;

/// Arguments of `tidemill drain`.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// How often it is looked whether the daemon has ended.
const LOOK: Duration = Duration::from_millis(200);

/// Carries it out; it returns when the daemon has ended.
pub async fn run(context: &Context, _: Args) -> Result<Exit> {
    let project = context.project()?;
    if !Daemon::watches(&project) {
        context.screen.talk("nobody watches this project");
        return Ok(Exit::Succeeded);
    }
    let holder = Lock::holder(&project.state()).ok_or_else(|| {
        Diagnostic::new("drain::unknown", "the lock file does not say which process watches this project")
            .help("it was started by an older tidemill: stop it with Ctrl-C there")
    })?;
    let store = Store::open(&project.state()).await?;
    store.drain(&holder.owner.to_string()).await?;
    socket::look(&project).await;
    let runs = store.in_work().await?.into_iter().filter(|run| !run.by_hand).count();
    context
        .screen
        .talk(format!("process {} takes nothing new and ends after {runs} runs", holder.owner.pid()));
    let clock = SystemClock::new();
    while Daemon::watches(&project) {
        clock.sleep(LOOK).await;
    }
    context.screen.line("drained");
    Ok(Exit::Succeeded)
}
