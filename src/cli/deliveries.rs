//! `tidemill deliveries`: messages about runs, and where each stands.

use serde_json::json;

use crate::cli::state::named;
use crate::cli::{Context, Exit};
use crate::config::Project;
use crate::diagnostic::Result;
use crate::run::intake::Daemon;
use crate::store::{Delivery, DeliveryState, Store};

/// Arguments of `tidemill deliveries`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only messages in this state: waiting, delivered, failed, gone
    #[arg(long)]
    state: Option<String>,
    /// At most this many, the newest first
    #[arg(long, default_value_t = 20)]
    limit: u32,
    /// A JSON list
    #[arg(long)]
    json: bool,
}

/// Carries it out.
pub async fn run(context: &Context, args: Args) -> Result<Exit> {
    let project = context.project()?;
    let state = args
        .state
        .as_deref()
        .map(|word| named(word, &DeliveryState::ALL, DeliveryState::as_str))
        .transpose()?;
    let store = Store::open(&project.state()).await?;
    let found = store.deliveries(state, args.limit).await?;
    if args.json {
        let list: Vec<serde_json::Value> = found.iter().map(as_json).collect();
        context.screen.line(super::json(&list)?);
        return Ok(Exit::Succeeded);
    }
    if found.is_empty() {
        let which =
            state.map_or_else(|| "yet".to_owned(), |state| format!("in the state {}", state.as_str()));
        let by = "`notify`, `on_success` or `on_failure` of a workflow makes some";
        context.screen.talk(format!("no messages {which}; {by}"));
    }
    for delivery in &found {
        context.screen.line(line(delivery));
    }
    Ok(Exit::Succeeded)
}

/// When a message that waits is sent: one process sends, so that nothing is sent twice.
pub(super) fn when(project: &Project) -> &'static str {
    if Daemon::watches(project) {
        "`tidemill watch` sends it now"
    } else {
        "the next `tidemill watch` sends it"
    }
}

/// `12  waiting    run.failed     20261130-231805-k3xq  https://host/...  it answered 503; 2 attempts, next 23:10:00 UTC`
fn line(delivery: &Delivery) -> String {
    let (id, state, moment) = (delivery.id, delivery.state.as_str(), delivery.moment.as_str());
    let times = match delivery.attempts {
        0 => String::new(),
        1 => "1 attempt".to_owned(),
        count => format!("{count} attempts"),
    };
    let next = (delivery.state == DeliveryState::Waiting && delivery.attempts > 0)
        .then(|| format!("next {}", delivery.due.strftime("%Y-%m-%d %H:%M:%S UTC")));
    let told: Vec<String> = delivery
        .error
        .clone()
        .into_iter()
        .chain([times])
        .chain(next)
        .filter(|text| !text.is_empty())
        .collect();
    let (run, to) = (&delivery.run, delivery.target.url.shown());
    format!("{id:>5}  {state:<9}  {moment:<13}  {run}  {to}  {}", told.join("; ")).trim_end().to_owned()
}

fn as_json(delivery: &Delivery) -> serde_json::Value {
    json!({
        "id": delivery.id,
        "message": delivery.message_id(),
        "run": delivery.run,
        "workflow": delivery.workflow,
        "event": delivery.moment.as_str(),
        "to": delivery.target.url.shown(),
        "state": delivery.state,
        "attempts": delivery.attempts,
        "at": delivery.at.to_string(),
        "changed_at": delivery.changed_at.to_string(),
        "next": (delivery.state == DeliveryState::Waiting).then(|| delivery.due.to_string()),
        "status": delivery.status,
        "answer": delivery.answer,
        "error": delivery.error,
    })
}
