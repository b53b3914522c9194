//! `tidemill watch`: the daemon in the foreground.

use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};

use crate::cli::{Context, Exit, SETTLE, live};
use crate::clock::SystemClock;
use crate::config::Project;
use crate::diagnostic::{Diagnostic, Report, Result};
use crate::event::id::Digest;
use crate::event::input::{RawPath, printable};
use crate::event::state::InputState;
use crate::report::progress::Steps;
use crate::report::screen::Screen;
use crate::run::conductor::{Conductor, Unfinished};
use crate::run::engines::Engines;
use crate::run::gc_daily::collect_daily;
use crate::run::intake::notice::{Notice, Tell};
use crate::run::intake::stop::Stop;
use crate::run::intake::{Daemon, Lock, WorkflowRoute};
use crate::run::queue::Conduct;
use crate::run::sweeping::sweep_now_and_then;
use crate::run::{abandoned, ended, watching};
use crate::store::Store;
use crate::workflow::units::show_duration;

/// Arguments of `tidemill watch`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Model for every run, instead of the one its workflow names
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
}

/// Carries it out.
pub async fn run(context: &Context, args: Args) -> Result<Exit> {
    let project = context.project()?;
    let store = Store::open(&project.state()).await?;
    // What follows ends and removes what dead processes left: not beside one that lives.
    let lock = Daemon::lock(&project)?;
    let (routes, conduct, engines) = prepare(context, &project, &store, args.model.as_deref()).await?;
    let opened = engines.opened();
    let clock = SystemClock::new();
    let complain = |diagnostic| context.screen.diagnostic(&diagnostic);
    let scripts: Vec<Digest> = routes.iter().map(|route| route.bundle.clone()).collect();
    let kept = store.clone();
    let stop = Stop::new();
    let view = live::show(context.screen, &store, None);
    let exit = tokio::select! {
        done = watch(context, lock, &project, store, routes, conduct, stop.clone()) => done,
        () = sweep_now_and_then(&clock, &opened, complain) => Ok(Exit::Failed),
        () = collect_daily(&clock, &project, &kept, &scripts, complain) => Ok(Exit::Failed),
        () = listen(stop.clone()) => Ok(Exit::Cancelled),
    };
    engines.settle(SETTLE).await;
    view.finish().await;
    exit
}

/// Watches `project` until `stop`, saying what happens.
pub async fn watch(
    context: &Context,
    lock: Lock,
    project: &Project,
    store: Store,
    routes: Vec<WorkflowRoute>,
    conduct: Arc<dyn Conduct>,
    stop: Stop,
) -> Result<Exit> {
    let screen = context.screen;
    for route in &routes {
        for drop in &route.drops {
            let inbox = project.config.folders.inbox.display();
            screen.talk(format!("{} <- {inbox}/{}", route.workflow, drop.glob));
        }
        for schedule in &route.schedules {
            screen.talk(format!("{} <- {}", route.workflow, schedule.describe()));
        }
    }
    if routes.iter().all(|route| route.drops.is_empty() && route.schedules.is_empty()) {
        let nothing = Diagnostic::new("watch::no_trigger", "no workflow has a trigger")
            .warning()
            .help("give one `triggers = { mill.drop { glob = \"...\" } }`, or a `mill.schedule`");
        screen.diagnostic(&nothing);
    }
    let tell = Tell::to(move |notice| say(screen, &notice));
    let clock = Arc::new(SystemClock::new());
    let daemon = Daemon::open(lock, project, store, clock, routes, conduct, tell).await?;
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
) -> Result<(Vec<WorkflowRoute>, Arc<dyn Conduct>, Engines)> {
    let routes = watching::routes(project, store, model).await?;
    let engines = context.engines(project);
    engines.keep_warm();
    // What a run would miss is missed at the start, not in the night.
    for route in &routes {
        engines.get(route.sandbox).await?;
    }
    abandoned::bury(project, store).await?;
    ended::tidy(project, store).await?;
    let steps = Arc::new(Steps::new(context.screen));
    let conductor = Conductor::new(project, store, engines.clone(), steps, Unfinished::Waits);
    Ok((routes, Arc::new(conductor), engines))
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
        Notice::Fired { schedule, at, run } => screen.talk(format!("{schedule}: {at}, run {run}")),
        Notice::Skipped { schedule, count: 1, last, reason } => {
            screen.talk(format!("{schedule}: {last}, no run: {reason}"));
        }
        Notice::Skipped { schedule, count, last, reason } => {
            screen.talk(format!("{schedule}: {count} instants up to {last}, no run: {reason}"));
        }
        Notice::PutAway { path, state, to } => {
            screen.talk(format!("{}: {state}, {}", path.display(), put_away(*state, to.as_ref())));
        }
        Notice::Requeued(run) => screen.talk(format!("run {run} was interrupted and starts over")),
        Notice::TriedAgain { run, wait, why } => {
            screen.talk(format!("run {run} is tried again in {}: {}", show_duration(*wait), warning(why)));
        }
        Notice::Finishing(runs) => screen.talk(finishing(*runs)),
        Notice::Paused { what, why } => screen.talk(format!("{what} pauses: {}", warning(why))),
        Notice::GoesOn(what) => screen.talk(format!("{what} goes on")),
        Notice::Warned(report) => screen.talk(warning(report)),
    }
}

fn put_away(state: InputState, to: Option<&RawPath>) -> String {
    match (to, state) {
        (None, InputState::Gone) => "it was taken away by someone else".to_owned(),
        (None, _) => "removed".to_owned(),
        (Some(to), InputState::Done) => format!("put into {}", to.display()),
        (Some(to), _) => format!("it stands in {}; `tidemill explain` says why", to.display()),
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
