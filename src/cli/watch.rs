//! `tidemill watch`: the daemon in the foreground.

use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use crate::cli::{Context, Exit, live};
use crate::clock::SystemClock;
use crate::config::Project;
use crate::diagnostic::{Diagnostic, Report, Result};
use crate::event::input::{RawPath, printable};
use crate::event::state::InputState;
use crate::report::progress::Steps;
use crate::report::screen::Screen;
use crate::run::intake::notice::{Notice, Tell};
use crate::run::intake::stop::Stop;
use crate::run::intake::{Daemon, WorkflowRoute};
use crate::run::queue::Conduct;
use crate::run::sweeping::sweep_now_and_then;
use crate::run::{abandoned, ended, watching};
use crate::sandbox::Engine;
use crate::sandbox::docker::Docker;
use crate::sandbox::local::Bubblewrap;
use crate::store::Store;

/// Arguments of `tidemill watch`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Model for every run, instead of the one its workflow names
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
}

/// How long the end of the process waits for containers to go away.
const SETTLE: Duration = Duration::from_secs(5);

/// Carries it out.
pub async fn run(context: &Context, args: Args) -> Result<Exit> {
    let project = context.project()?;
    let store = Store::open(&project.state()).await?;
    let (routes, conduct, engine) = prepare(context, &project, &store, args.model.as_deref()).await?;
    let engines = engines(&project, &engine).await;
    let clock = SystemClock::new();
    let complain = |diagnostic| context.screen.diagnostic(&diagnostic);
    let stop = Stop::new();
    let view = live::show(context.screen, &store, None);
    let exit = tokio::select! {
        done = watch(context, &project, store, routes, conduct, stop.clone()) => done,
        () = sweep_now_and_then(&clock, &engines, complain) => Ok(Exit::Failed),
        () = listen(stop.clone()) => Ok(Exit::Cancelled),
    };
    engine.settle(SETTLE).await;
    view.finish().await;
    exit
}

/// All whose leavings are looked for: bubblewrap as well, where there is one.
async fn engines(project: &Project, docker: &Docker) -> Vec<Arc<dyn Engine>> {
    let mut engines: Vec<Arc<dyn Engine>> = vec![Arc::new(docker.clone())];
    if let Ok(bubblewrap) = Bubblewrap::open(&project.state()).await {
        engines.push(Arc::new(bubblewrap));
    }
    engines
}

/// Watches `project` until `stop`, saying what happens.
pub async fn watch(
    context: &Context,
    project: &Project,
    store: Store,
    routes: Vec<WorkflowRoute>,
    conduct: Arc<dyn Conduct>,
    stop: Stop,
) -> Result<Exit> {
    let screen = context.screen;
    for route in &routes {
        for glob in &route.globs {
            screen.talk(format!("{} <- {}/{glob}", route.workflow, project.config.folders.inbox.display()));
        }
    }
    if routes.iter().all(|route| route.globs.is_empty()) {
        let nothing = Diagnostic::new("watch::no_trigger", "no workflow is started by a dropped file")
            .warning()
            .help("give one `triggers = { mill.drop { glob = \"...\" } }`");
        screen.diagnostic(&nothing);
    }
    let tell = Tell::to(move |notice| say(screen, &notice));
    let clock = Arc::new(SystemClock::new());
    let daemon = Daemon::open(project, store, clock, routes, conduct, tell).await?;
    screen.talk(format!("watching {}; Ctrl-C stops", project.inbox().display()));
    daemon.run(stop).await?;
    screen.talk("stopped");
    Ok(Exit::Succeeded)
}

/// The workflows' routes, and who carries runs out.
async fn prepare(
    context: &Context,
    project: &Project,
    store: &Store,
    model: Option<&str>,
) -> Result<(Vec<WorkflowRoute>, Arc<dyn Conduct>, Docker)> {
    let routes = watching::routes(project, store, model).await?;
    let engine = Docker::open(project).await?;
    super::sweep(context, &engine).await;
    abandoned::bury(project, store).await?;
    ended::tidy(project, store).await?;
    let steps = Arc::new(Steps::new(context.screen));
    let conductor = watching::conductor(project, store, Arc::new(engine.clone()), steps);
    Ok((routes, Arc::new(conductor), engine))
}

/// Ctrl-C once: finish. Twice, or SIGTERM: break off. Once more: it returns, and the process ends at once.
async fn listen(stop: Stop) {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return std::future::pending().await;
    };
    for stops in [Stop::finish, Stop::interrupt] {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => stops(&stop),
            _ = terminate.recv() => {
                stop.interrupt();
                break;
            }
        }
    }
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}

pub(super) fn say(screen: Screen, notice: &Notice) {
    match notice {
        Notice::InboxAbsent(inbox) => {
            screen.talk(format!("{} is not there; waiting for it", printable(inbox.as_os_str())));
        }
        Notice::InboxBack(inbox) => screen.talk(format!("{} is there", printable(inbox.as_os_str()))),
        Notice::Left { path, state, reason } => {
            screen.talk(format!("{}: {state}, {reason}", path.display()));
        }
        Notice::Claimed { path, runs } => {
            for (workflow, run) in runs {
                screen.talk(format!("{}: {workflow}, run {run}", path.display()));
            }
        }
        Notice::PutAway { path, state, to } => {
            let to = to.as_ref().map_or_else(|| "nowhere: it is gone".to_owned(), RawPath::display);
            let reason = if *state == InputState::Done { "" } else { " (the reason is beside it)" };
            screen.talk(format!("{}: {state}, put into {to}{reason}", path.display()));
        }
        Notice::Requeued(run) => screen.talk(format!("run {run} was interrupted and starts over")),
        Notice::Finishing(runs) => screen.talk(finishing(*runs)),
        Notice::Warned(report) => screen.talk(warning(report)),
    }
}

fn finishing(runs: usize) -> String {
    let (count, it, starts) = match runs {
        1 => ("1 run".to_owned(), "it", "it starts"),
        runs => (format!("{runs} runs"), "them", "they start"),
    };
    format!("finishing {count}; Ctrl-C again stops {it}, and {starts} over next time")
}

fn warning(report: &Report) -> String {
    let help = report.help.as_ref().map_or_else(String::new, |help| format!(" ({help})"));
    format!("{}: {}{help}", report.code, report.message)
}
