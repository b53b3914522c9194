//! `tidemill watch`: the daemon in the foreground.

use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};

use crate::cli::serving::Serving;
use crate::cli::{Context, Exit, SETTLE, live, pause};
use crate::clock::SystemClock;
use crate::config::Project;
use crate::diagnostic::{Diagnostic, Report, Result};
use crate::event::input::{RawPath, printable};
use crate::event::state::InputState;
use crate::report::progress::Steps;
use crate::report::screen::Screen;
use crate::run::conductor::{Conductor, Unfinished};
use crate::run::deliveries::Deliveries;
use crate::run::engines::Engines;
use crate::run::gc_daily::collect_daily;
use crate::run::hooks::Table;
use crate::run::intake::notice::{Notice, Swap, Tell};
use crate::run::intake::stop::Stop;
use crate::run::intake::{Daemon, Lock, WorkflowRoute};
use crate::run::queue::Conduct;
use crate::run::reload::Reload;
use crate::run::sweeping::sweep_now_and_then;
use crate::run::{abandoned, ended, models, watching};
use crate::serve::Server;
use crate::store::Store;

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
    let clock = SystemClock::new();
    let complain = |diagnostic| context.screen.diagnostic(&diagnostic);
    let stop = Stop::new();
    let view = live::show(context.screen, &store, None);
    let work = Work { routes, conduct, engines: engines.clone(), model: args.model };
    let exit = tokio::select! {
        done = watch(context, lock, &project, store, work, stop.clone()) => done,
        () = sweep_now_and_then(&clock, || engines.opened(), complain) => Ok(Exit::Failed),
        () = listen(stop.clone()) => Ok(Exit::Cancelled),
    };
    engines.settle(SETTLE).await;
    view.finish().await;
    exit
}

/// What is watched for, and how it is done.
struct Work {
    routes: Vec<WorkflowRoute>,
    conduct: Arc<dyn Conduct>,
    engines: Engines,
    /// Stands for the model that a workflow names.
    model: Option<String>,
}

/// Watches `project` until `stop`, saying what happens.
async fn watch(
    context: &Context,
    lock: Lock,
    project: &Project,
    store: Store,
    work: Work,
    stop: Stop,
) -> Result<Exit> {
    let screen = context.screen;
    let Work { routes, conduct, engines, model } = work;
    let webhooks = Table::of(&routes, &models::env)?;
    let server =
        if webhooks.is_empty() { None } else { Some(Server::bind(project.config.server.listen).await?) };
    for route in &routes {
        for drop in &route.drops {
            let inbox = project.config.folders.inbox.display();
            screen.talk(format!("{} <- {inbox}/{}", route.workflow, drop.glob));
        }
        for schedule in &route.schedules {
            screen.talk(format!("{} <- {}", route.workflow, schedule.describe()));
        }
        for (webhook, server) in route.webhooks.iter().zip(server.iter().cycle()) {
            let (workflow, address) = (&route.workflow, server.address());
            screen.talk(format!("{workflow} <- http://{address}/hooks/{}", webhook.path));
        }
    }
    if routes.iter().all(WorkflowRoute::has_no_trigger) {
        let nothing = Diagnostic::new("watch::no_trigger", "no workflow has a trigger").warning().help(
            "give one `triggers = { mill.drop { glob = \"...\" } }`, a `mill.schedule` or a `mill.webhook`",
        );
        screen.diagnostic(&nothing);
    }
    let paused = store.paused().await?;
    if !paused.is_empty() {
        screen.talk(pause::words(&paused));
    }
    let tell = Tell::to(move |notice| say(screen, &notice));
    let clock = Arc::new(SystemClock::new());
    let env = Arc::new(models::env);
    let deliveries = Deliveries::new(project, store.clone(), clock.clone(), env, tell.clone());
    let daemon =
        Daemon::open(lock, project, store.clone(), clock.clone(), routes, conduct, tell.clone()).await?;
    let (in_force, hooks) = (daemon.in_force(), daemon.hooks());
    hooks.set(webhooks);
    screen.talk(format!("watching {}; Ctrl-C stops", project.inbox().display()));
    let reload = Reload {
        project: project.clone(),
        store: store.clone(),
        engines,
        clock: clock.clone(),
        in_force: in_force.clone(),
        model,
        env: Arc::new(models::env),
        tell,
        show: Arc::new(move |diagnostic| screen.diagnostic(diagnostic)),
    };
    let complain = |diagnostic| screen.diagnostic(&diagnostic);
    let serving = Serving {
        listen: project.config.server.listen,
        in_force: in_force.clone(),
        hooks,
        clock: clock.clone(),
        complain: &complain,
    };
    let sending = async {
        let sent = deliveries.work(&stop).await;
        if sent.is_err() {
            stop.interrupt();
        }
        sent
    };
    let watched = async {
        let (watched, (), sent) =
            tokio::join!(daemon.run(stop.clone()), serving.work(server, &stop), sending);
        watched.and(sent)
    };
    // Much is in their hands, and whoever waits for them is not to carry that.
    tokio::select! {
        done = Box::pin(watched) => done?,
        () = Box::pin(reload.work()) => {}
        () = collect_daily(clock.as_ref(), project, &store, &in_force, complain) => {}
    }
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
    if ended::let_go(project, store).await? > 0 {
        for engine in engines.opened() {
            // What it complains about, it complains about again at the next sweep, which tells.
            let _ = engine.sweep().await;
        }
    }
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
        Notice::Reloaded { workflow, how } => screen.talk(match how {
            Swap::New(version) => format!("{workflow}: a new workflow, version {}", version.short()),
            Swap::Changed(version) => format!("{workflow}: version {} for new runs", version.short()),
            Swap::Removed => format!("{workflow}: its script is gone; no new runs"),
        }),
        Notice::Received { hook, run } => screen.talk(format!("hooks/{hook}: run {run}")),
        Notice::Refused { hook, count: 1, why } => screen.talk(format!("hooks/{hook}: not taken: {why}")),
        Notice::Refused { hook, count, why } => {
            screen.talk(format!("hooks/{hook}: {count} requests not taken: {why}"));
        }
        Notice::Undelivered { delivery, moment, run, to, state, why } => {
            let then = match *state {
                "waiting" => "it is tried again".to_owned(),
                "gone" => "nothing is sent there any more".to_owned(),
                _ => format!("given up; `tidemill redeliver {delivery}` tries again"),
            };
            screen.talk(format!("{moment} of run {run} did not reach {to}: {why}; {then}"));
        }
        Notice::PutAway { path, state, to } => {
            screen.talk(format!("{}: {state}, {}", path.display(), put_away(*state, to.as_ref())));
        }
        Notice::Requeued(run) => screen.talk(format!("run {run} was interrupted and goes on")),
        Notice::TriedAgain { run, again } => screen.talk(format!("run {run} is {again}")),
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
    let (count, it, goes) = match runs {
        1 => ("1 run".to_owned(), "it", "it goes"),
        runs => (format!("{runs} runs"), "them", "they go"),
    };
    format!("finishing {count}; Ctrl-C again stops {it}, and {goes} on next time")
}

fn warning(report: &Report) -> String {
    let help = report.help.as_ref().map_or_else(String::new, |help| format!(" ({help})"));
    format!("{}: {}{help}", report.code, report.message)
}
