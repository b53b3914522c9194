//! `tidemill demo`

pub mod drop;
pub mod found;
pub mod play;
pub mod readings;
pub mod summary;
pub mod wait;

use crate::cli::{Context, Exit};
use crate::diagnostic::Result;

/// Arguments of `tidemill demo`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A model of tidemill.toml in place of the scripted analyst, e.g. gpt-5.4
    #[arg(long, value_name = "NAME", default_value = MODEL)]
    pub model: String,
    /// Go on watching afterwards, for files of your own, until Ctrl-C
    #[arg(long)]
    pub keep: bool,
}

/// The scripted analyst: no key and no network needed.
pub const MODEL: &str = "analyst";

/// The workflow that is shown.
pub const WORKFLOW: &str = "energy-anomalies";

/// Carries it out.
pub async fn run(_context: &Context, _args: Args) -> Result<Exit> {
    Ok(Exit::Failed)
}
