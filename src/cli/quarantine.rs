//! `tidemill quarantine`: what failed so often that nothing is spent on it any more.

use serde_json::{Value, json};

use crate::cli::{Context, Exit};
use crate::diagnostic::Result;
use crate::event::input::printable;
use crate::event::usage::Cost;
use crate::store::{RunRow, Store};

/// Arguments of `tidemill quarantine`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A JSON list
    #[arg(long)]
    json: bool,
}

/// Carries it out.
pub async fn run(context: &Context, args: Args) -> Result<Exit> {
    let project = context.project()?;
    let most = project.config.watch.quarantine;
    let store = Store::open(&project.state()).await?;
    let held = if most == 0 { Vec::new() } else { store.quarantined(most).await? };
    if args.json {
        context.screen.line(super::json(&held.iter().map(|runs| as_json(runs)).collect::<Vec<_>>())?);
        return Ok(Exit::Succeeded);
    }
    if held.is_empty() {
        context.screen.talk(match most {
            0 => "`quarantine` under [watch] is 0: whatever fails is run again".to_owned(),
            most => format!("nothing failed {most} times in a row"),
        });
    }
    for runs in &held {
        let Some(last) = runs.first() else { continue };
        let input = last.inputs.first().map(|input| input.path.display()).unwrap_or_default();
        let cost = spent(runs).map(|cost| format!(", {cost}")).unwrap_or_default();
        let times = runs.len();
        context.screen.line(format!("{}  {}  {input}  {times} times in a row{cost}", last.id, last.workflow));
        for run in runs {
            context.screen.line(format!("  {}", printable(story(run).as_ref())));
        }
    }
    if !held.is_empty() {
        context
            .screen
            .talk("`tidemill retry RUN` runs one of them all the same; a changed script clears them");
    }
    Ok(Exit::Succeeded)
}

/// How one of the runs ended.
fn story(run: &RunRow) -> String {
    let why = run.report.as_ref().map(|report| format!(": {}", report.message)).unwrap_or_default();
    format!("{} {}{why}", run.id, run.state)
}

/// What they cost together, when that is known and not nothing.
fn spent(runs: &[RunRow]) -> Option<Cost> {
    let sum = runs.iter().try_fold(Cost::ZERO, |sum, run| Some(sum + run.cost?))?;
    Some(sum).filter(|sum| sum.usd() > 0.0)
}

fn as_json(runs: &[RunRow]) -> Value {
    json!({ "workflow": runs.first().map(|run| &run.workflow), "cost": spent(runs), "runs": runs })
}
