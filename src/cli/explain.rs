//! `tidemill explain`: what would happen to a path in the drop folder, or why a schedule made no run.

mod options;
mod path;
mod schedule;
mod text;

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::cli::explain::schedule::Meant;
use crate::cli::{Context, Exit};
use crate::config::Project;
use crate::diagnostic::Result;
use crate::event::input::{Fingerprint, RawPath};
use crate::event::state::InputState;
use crate::run::intake::Daemon;
use crate::script;
use crate::store::{Change, InputRow, RunRow, Store};
use crate::trigger::drop_folder::judge::{Judged, judge};
use crate::trigger::drop_folder::links::Links;
use crate::trigger::drop_folder::routes::{Called, Routes};
use crate::trigger::drop_folder::scan::{Found, Root, look_at, root};
use crate::workflow::trigger::Afterwards;

/// Arguments of `tidemill explain`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A path in the inbox, where nothing has to stand; or a schedule such as `energy/1`, or a workflow that has some
    #[arg(value_name = "PATH|SCHEDULE")]
    pub path: PathBuf,
    /// Print it as JSON
    #[arg(long)]
    pub json: bool,
}

/// Everything that is known about a path.
#[derive(Debug)]
struct Explanation {
    /// Relative to the inbox.
    path: RawPath,
    now: Now,
    matches: Vec<Matched>,
    /// Workflow and glob.
    misses: Vec<(String, String)>,
    /// Scripts with mistakes: their globs are not known.
    broken_scripts: usize,
    inbox_present: bool,
    watched: bool,
    history: Vec<Past>,
}

/// What stands there now.
#[derive(Debug, PartialEq, Eq)]
enum Now {
    /// Nothing.
    Nothing,
    /// A rule or an error keeps it from being taken; the path is that of the folder above it where that is why.
    Left { path: RawPath, state: InputState, reason: String },
    /// A file of this version would be taken.
    Waits(Fingerprint),
}

/// A drop that the path is for.
#[derive(Debug)]
struct Matched {
    workflow: String,
    glob: String,
    /// What the drop says besides.
    options: Vec<String>,
    on_success: Option<Afterwards>,
    on_failure: Option<Afterwards>,
}

/// One file that had this path.
#[derive(Debug)]
struct Past {
    row: InputRow,
    changes: Vec<Change>,
    runs: Vec<RunRow>,
}

/// Carries it out.
pub async fn run(context: &Context, args: Args) -> Result<Exit> {
    let project = context.project()?;
    let Some(path) = path::in_inbox(&project, &args.path) else {
        return elsewhere(context, &project, &args).await;
    };
    let explanation = gather(&project, path).await?;
    if args.json {
        context.screen.line(as_json(&explanation));
    } else {
        context.screen.line(text::tell(&explanation, &project));
    }
    Ok(Exit::Succeeded)
}

/// What is no path in the inbox may be a schedule.
async fn elsewhere(context: &Context, project: &Project, args: &Args) -> Result<Exit> {
    let hint = match schedule::find(project, &args.path.to_string_lossy()).await? {
        Meant::Schedules(told) => {
            context.screen.line(if args.json { told.as_json().to_string() } else { told.text() });
            return Ok(Exit::Succeeded);
        }
        Meant::Unscheduled => Some("The workflow of that name has no schedule.".to_owned()),
        Meant::Nothing(Some(near)) => Some(format!("If a schedule was meant: did you mean `{near}`?")),
        Meant::Nothing(None) => args.path.is_relative().then(|| text::below(project, &args.path)),
    };
    if args.json {
        context.screen.line(json!({ "path": args.path.to_string_lossy(), "inside_inbox": false }));
        return Ok(Exit::Succeeded);
    }
    context.screen.line(text::outside(project, &args.path));
    if let Some(hint) = hint {
        context.screen.line(hint);
    }
    Ok(Exit::Succeeded)
}

async fn gather(project: &Project, path: RawPath) -> Result<Explanation> {
    let checked = script::check(project, &[]).await;
    let drops = checked.workflows.iter().flat_map(|workflow| {
        let name = workflow.name.as_str();
        workflow.triggers.iter().map(move |drop| (name, drop))
    });
    let routes = Routes::new(drops)?;
    let inbox = project.inbox();
    let mut links = Links::new(&inbox, &project.config.watch.links_to);
    let now = look_at(&inbox, &path).map_or(Now::Nothing, |mut found| {
        links.resolve_one(&mut found, &routes);
        now(found, &routes)
    });
    let owned = |found: Vec<crate::trigger::drop_folder::routes::Match<'_>>| {
        found.into_iter().map(|route| (route.workflow.to_owned(), route.glob.to_owned())).collect()
    };
    Ok(Explanation {
        matches: matches(&routes, &path),
        misses: owned(routes.missing(&path)),
        broken_scripts: checked.diagnostics.iter().filter(|found| !found.is_warning()).count(),
        inbox_present: root(&inbox) != Root::Absent,
        watched: Daemon::watches(project),
        history: history(project, &path).await?,
        path,
        now,
    })
}

fn now(found: Found, routes: &Routes) -> Now {
    match judge(&found, routes) {
        Judged::Left(state, reason) => Now::Left { path: found.path, state, reason },
        Judged::Company(role, route) => {
            let (option, workflow, role) = (role.option(), &route.workflow, role.as_str());
            let reason = format!("it goes with another file (`{option}` of {workflow}; rule `{role}`)");
            Now::Left { path: found.path, state: InputState::Ignored, reason }
        }
        Judged::Input(_) => Now::Waits(found.fingerprint),
    }
}

fn matches(routes: &Routes, path: &RawPath) -> Vec<Matched> {
    let Called::Input(takers) = routes.called(path) else {
        return Vec::new();
    };
    let matched = takers.iter().map(|route| Matched {
        workflow: route.workflow.clone(),
        glob: route.drop.glob.clone(),
        options: options::options(&route.drop),
        on_success: route.drop.on_success.clone(),
        on_failure: route.drop.on_failure.clone(),
    });
    matched.collect()
}

/// What the ledger knows. Where there is none yet, none is made.
async fn history(project: &Project, path: &RawPath) -> Result<Vec<Past>> {
    let state = project.state();
    if !state.join(Store::FILE).is_file() {
        return Ok(Vec::new());
    }
    let store = Store::open(&state).await?;
    let mut history = Vec::new();
    for (row, changes) in store.history(path).await? {
        let runs = store.runs_of(row.id).await?;
        history.push(Past { row, changes, runs });
    }
    Ok(history)
}

fn as_json(explanation: &Explanation) -> Value {
    let pairs = |pairs: &[(String, String)]| -> Vec<Value> {
        pairs.iter().map(|(workflow, glob)| json!({ "workflow": workflow, "glob": glob })).collect()
    };
    let now = match &explanation.now {
        Now::Nothing => json!({ "state": "absent" }),
        Now::Left { path, state, reason } => {
            json!({ "state": state.as_str(), "reason": reason, "because_of": path.encode() })
        }
        Now::Waits(_) => json!({ "state": "waits" }),
    };
    let matches: Vec<Value> = explanation
        .matches
        .iter()
        .map(|drop| json!({ "workflow": drop.workflow, "glob": drop.glob, "options": drop.options }))
        .collect();
    let history: Vec<Value> = explanation.history.iter().map(past_as_json).collect();
    json!({
        "path": explanation.path.encode(),
        "shown": explanation.path.display(),
        "inside_inbox": true,
        "inbox_present": explanation.inbox_present,
        "watched": explanation.watched,
        "now": now,
        "matches": matches,
        "misses": pairs(&explanation.misses),
        "broken_scripts": explanation.broken_scripts,
        "history": history,
    })
}

fn past_as_json(past: &Past) -> Value {
    let changes: Vec<Value> = past
        .changes
        .iter()
        .map(|change| json!({ "at": change.at.to_string(), "state": change.to.as_str(), "reason": change.reason }))
        .collect();
    let runs: Vec<Value> = past
        .runs
        .iter()
        .map(|run| json!({ "run": run.id.as_str(), "workflow": run.workflow, "state": run.state.as_str() }))
        .collect();
    let final_path = past.row.final_path.clone().map(|path| RawPath::new(path).encode());
    json!({
        "input": past.row.id,
        "size": past.row.fingerprint.size,
        "digest": past.row.digest,
        "state": past.row.state.as_str(),
        "reason": past.row.reason,
        "final_path": final_path,
        "changes": changes,
        "runs": runs,
    })
}
