//! `tidemill redeliver`: a message once more.

use crate::cli::{Context, Exit, deliveries};
use crate::diagnostic::Result;
use crate::store::Store;

/// Arguments of `tidemill redeliver`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The message's number, as `tidemill deliveries` shows it
    id: i64,
}

/// Carries it out: the daemon sends it.
pub async fn run(context: &Context, args: Args) -> Result<Exit> {
    let project = context.project()?;
    let store = Store::open(&project.state()).await?;
    let delivery = store.redeliver(args.id).await?;
    let when = deliveries::when(&project);
    let (moment, run, to) = (delivery.moment.as_str(), &delivery.run, delivery.target.url.shown());
    context.screen.talk(format!("{moment} of run {run} to {to}: {when}"));
    Ok(Exit::Succeeded)
}
