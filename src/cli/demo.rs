//! `tidemill demo`

pub mod readings;

use crate::cli::{Context, Exit};
use crate::diagnostic::Result;

/// Arguments of `tidemill demo`.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Carries it out.
pub async fn run(_context: &Context, _args: Args) -> Result<Exit> {
    Ok(Exit::Failed)
}
