//! `tidemill inputs`: what the drop folder has seen, and where each file stands.

use serde_json::{Value, json};

use crate::cli::state::named;
use crate::cli::{Context, Exit};
use crate::diagnostic::Result;
use crate::event::input::{RawPath, Role};
use crate::event::state::InputState;
use crate::store::{InputRow, Store};

/// Arguments of `tidemill inputs`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only inputs in this state, e.g. settling, blocked or failed
    #[arg(long)]
    state: Option<String>,
    /// At most this many, the ones that changed last first
    #[arg(long, default_value_t = 20)]
    limit: u32,
    /// A JSON list
    #[arg(long)]
    json: bool,
}

/// Carries it out.
pub async fn run(context: &Context, args: Args) -> Result<Exit> {
    let project = context.project()?;
    let state =
        args.state.as_deref().map(|word| named(word, &InputState::ALL, InputState::as_str)).transpose()?;
    let store = Store::open(&project.state()).await?;
    let rows = store.latest_inputs(state, args.limit).await?;
    if args.json {
        let rows: Vec<Value> = rows.iter().map(as_json).collect();
        context.screen.line(super::json(&rows)?);
        return Ok(Exit::Succeeded);
    }
    if rows.is_empty() {
        let place = project.config.folders.inbox.display();
        let which = state.map_or_else(|| "yet".to_owned(), |state| format!("in the state {state}"));
        context
            .screen
            .talk(format!("no inputs {which}; `tidemill watch` takes in what is dropped into {place}/"));
    }
    for row in rows {
        let reason = row.reason.as_deref().unwrap_or_default();
        let line = format!("{:<11}  {}  {reason}", row.state, row.path.display());
        context.screen.line(line.trim_end());
    }
    Ok(Exit::Succeeded)
}

fn as_json(row: &InputRow) -> Value {
    json!({
        "input": row.id,
        "path": row.path.encode(),
        "shown": row.path.display(),
        "state": row.state.as_str(),
        "reason": row.reason,
        "workflows": row.workflows,
        "claimed_with": (row.parcel != row.id).then_some(row.parcel),
        "goes_with_it_as": row.role.map(Role::as_str),
        "kept": row.kept,
        "size": row.fingerprint.size,
        "digest": row.digest,
        "first_seen": row.first_seen,
        "changed_at": row.changed_at,
        "final_path": row.final_path.clone().map(|path| RawPath::new(path).encode()),
    })
}
