//! `tidemill run`: a workflow once, in the foreground.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::cli::{Context, Exit, SETTLE, deliveries, live, show, stop};
use crate::config::Project;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::RunId;
use crate::event::state::RunState;
use crate::event::trigger::Trigger;
use crate::owner::Owner;
use crate::report::progress::Steps;
use crate::run::abandoned::{self, Hold};
use crate::run::cancel;
use crate::run::conductor::{Conductor, Unfinished};
use crate::run::folder::RunFolder;
use crate::run::inputs;
use crate::run::queue::Conduct as _;
use crate::run::route::route;
use crate::script;
use crate::store::{NewRun, Store};
use crate::workflow::network::Mode;
use crate::workflow::sandbox::Kind;

/// Arguments of `tidemill run`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The workflow's name
    workflow: String,
    /// Files to work on: one run for each, one after the other; without any, one run without input
    files: Vec<PathBuf>,
    /// Use this model instead of the one the workflow names
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Let the sandbox reach everything public, and print the `network` the workflow needs
    #[arg(long)]
    learn: bool,
    /// Print one JSON document per event, to standard output
    #[arg(long)]
    json: bool,
}

/// Carries it out. The exit code is that of the first run that does not succeed.
pub async fn run(context: &Context, args: Args) -> Result<Exit> {
    let mut project = context.project()?;
    if args.learn {
        project.config.network.mode = Mode::Learn;
    }
    let loaded = script::find(&project, &args.workflow).await?;
    if args.learn && loaded.workflow.sandbox != Kind::Docker {
        let message = format!("`{}` has no container, so there is no network to learn about", args.workflow);
        return Err(Diagnostic::new("usage::learn", message).help("leave `--learn` out"));
    }
    for warning in &loaded.warnings {
        context.screen.diagnostic(warning);
    }
    let store = Store::open(&project.state()).await?;
    let route = route(&project, &store, &loaded, args.model.as_deref()).await?;
    let engines = context.engines(&project);
    engines.get(loaded.workflow.sandbox).await?;
    abandoned::bury(&project, &store).await?;
    let progress = Arc::new(Steps::new(context.screen));
    let conductor = Conductor::new(&project, &store, engines.clone(), progress, Unfinished::Ends);
    let stop = CancellationToken::new();
    let given_up = stop::on_signals(context.screen, stop.clone(), "cancelling; again kills at once");
    let working = async {
        let mut exit = Exit::Succeeded;
        for file in files(&args.files) {
            let (new, _hold) = queue(&project, &conductor, &route, file)?;
            let state = carry_out(context, &store, &conductor, new, &stop, args.json).await?;
            if exit == Exit::Succeeded {
                exit = Exit::of(state);
            }
            if stop.is_cancelled() {
                break;
            }
        }
        Ok(exit)
    };
    let exit = tokio::select! {
        exit = working => exit,
        () = given_up => Ok(Exit::Cancelled),
    };
    // After a second signal the work was dropped where it stood: its container and its run still need an end.
    engines.settle(SETTLE).await;
    if exit.as_ref().is_ok_and(|exit| *exit == Exit::Cancelled) {
        abandoned::bury(&project, &store).await?;
    }
    exit
}

/// One run per file, or one without.
fn files(files: &[PathBuf]) -> Vec<Option<&Path>> {
    if files.is_empty() { vec![None] } else { files.iter().map(|file| Some(file.as_path())).collect() }
}

fn queue(
    project: &Project,
    conductor: &Conductor,
    route: &crate::run::intake::WorkflowRoute,
    file: Option<&Path>,
) -> Result<(NewRun, Hold)> {
    let at = conductor.clock.now();
    let id = RunId::new(at);
    let folder = RunFolder::new(&project.state(), &id);
    let hold = abandoned::hold(&folder)?;
    let inputs = match file {
        Some(file) => vec![inputs::take(file, &folder).inspect_err(|_| folder.tidy())?],
        None => Vec::new(),
    };
    let new = NewRun {
        inputs,
        holder: Some(Owner::this_process()?),
        ..NewRun::new(id, &route.workflow, Trigger::Manual, route.bundle.clone(), &route.model, at)
    };
    Ok((new, hold))
}

async fn carry_out(
    context: &Context,
    store: &Store,
    conductor: &Conductor,
    new: NewRun,
    stop: &CancellationToken,
    json: bool,
) -> Result<RunState> {
    let id = new.id.clone();
    let watching = if json {
        live::print(context.screen, store, id.clone())
    } else {
        live::show(context.screen, store, Some(id.clone()))
    };
    store.queue_run(new).await?;
    let row = store.run(&id).await?.ok_or_else(|| {
        Diagnostic::new("store::lost", format!("the run {id} is not in the store"))
            .help("`tidemill doctor` checks it")
    })?;
    // Somebody else may want this one to stop, and only this one.
    let own = stop.child_token();
    let state = tokio::select! {
        state = conductor.conduct(&row, own.clone()) => state,
        never = async {
            cancel::asked(store, &id, conductor.clock.as_ref()).await;
            own.cancel();
            std::future::pending().await
        } => never,
    };
    watching.finish().await;
    let state = state?;
    if !json && let Some(row) = store.run(&id).await? {
        let events = store.all_events(&id).await?;
        context.screen.talk("");
        context.screen.line(show::text(&row, &events));
        if store.waiting_deliveries(&id).await? > 0 {
            let when = deliveries::when(&conductor.project);
            context.screen.talk(format!("a message about it waits: {when}"));
        }
    }
    Ok(state)
}
