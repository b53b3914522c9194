//! `tidemill gc`: removes what ended longer ago than it is to be remembered, and what nothing mentions any more.

use crate::cli::{Context, Exit};
use crate::clock::{Clock as _, SystemClock};
use crate::diagnostic::Result;
use crate::run::gc::{self, Garbage};
use crate::run::intake::Daemon;
use crate::store::Store;
use crate::workflow::units::show_size;

/// Arguments of `tidemill gc`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Say what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
}

/// Carries it out.
pub async fn run(context: &Context, args: Args) -> Result<Exit> {
    let project = context.project()?;
    let store = Store::open(&project.state()).await?;
    let mut garbage = gc::find(&project, &store, SystemClock::new().now()).await?;
    if Daemon::watches(&project) && !garbage.strays.is_empty() {
        // It knows which scripts it will need, and nobody else does.
        garbage.strays.clear();
        context
            .screen
            .talk("content is left to the `tidemill watch` that runs here; it removes some once a day");
    }
    for line in lines(&garbage) {
        context.screen.line(line);
    }
    if garbage.is_empty() {
        context.screen.talk("there is nothing to remove");
    } else if args.dry_run {
        context.screen.talk("nothing was removed");
    } else {
        let freed = gc::remove(&store, garbage).await?;
        context.screen.talk(format!("{} are free now", show_size(freed)));
    }
    Ok(Exit::Succeeded)
}

fn lines(garbage: &Garbage) -> Vec<String> {
    let runs = match garbage.before {
        None => {
            "runs: none, they are remembered for ever (`runs` under [retention] in tidemill.toml)".to_owned()
        }
        Some(before) => format!(
            "runs: {} that ended before {before:.0}, with {} of files kept aside",
            garbage.runs.len(),
            show_size(garbage.kept_bytes)
        ),
    };
    vec![
        runs,
        format!("inputs: {} of theirs in the ledger", garbage.inputs),
        format!(
            "content: {} files that nothing mentions, {}",
            garbage.strays.len(),
            show_size(garbage.stray_bytes())
        ),
    ]
}
