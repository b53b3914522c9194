//! The command line: one file per command.

pub mod cancel;
pub mod check;
pub mod deliveries;
pub mod demo;
pub mod doctor;
pub mod drain;
pub mod explain;
pub mod gc;
pub mod images;
pub mod init;
pub mod inputs;
pub mod live;
pub mod logs;
pub mod next;
pub mod pause;
pub mod quarantine;
pub mod redeliver;
pub mod retry;
pub mod run;
pub mod runs;
pub mod salvage;
mod serving;
pub mod show;
mod state;
pub mod status;
mod steps;
pub mod stop;
pub mod watch;
pub mod workflows;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};

use crate::config::Project;
use crate::diagnostic::Result;
use crate::event::state::RunState;
use crate::report::screen::Screen;
use crate::run::engines::Engines;

/// Drop a file, get validated artifacts: Lua workflows that run LLM agents in Docker sandboxes.
#[derive(Debug, Parser)]
#[command(name = "tidemill", version, disable_help_subcommand = true)]
pub struct Cli {
    /// The project's folder; by default the nearest one upwards with a tidemill.toml
    #[arg(long, global = true, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// The commands, in the order a user meets them.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a project: tidemill.toml, workflows/, images/, inbox/, outbox/
    Init(init::Args),
    /// Report every mistake in every script
    Check(check::Args),
    /// Run a workflow once, in the foreground
    Run(run::Args),
    /// Run what is dropped, what schedules start and what webhooks ask for
    Watch(watch::Args),
    /// List workflows: their versions, what starts them, what is wrong with them
    Workflows(workflows::Args),
    /// List what was dropped, and where each file stands
    Inputs(inputs::Args),
    /// List runs
    Runs(runs::Args),
    /// Show one run: state, findings, artifacts, cost
    Show(show::Args),
    /// Show the events of one run
    Logs(logs::Args),
    /// Run once more what has ended: one run, or all that failed
    Retry(retry::Args),
    /// List what failed so often that nothing is spent on it any more
    Quarantine(quarantine::Args),
    /// Stop one run, whoever carries it out
    Cancel(cancel::Args),
    /// Let no new run begin, of one workflow or at all
    Pause(pause::Args),
    /// Let runs begin again
    Resume(pause::Args),
    /// Have the daemon take nothing new and end when its runs have
    Drain(drain::Args),
    /// Say who watches the project, what is in work and what waits
    Status(status::Args),
    /// Say what would happen to a path in the drop folder, or why a schedule made no run
    Explain(explain::Args),
    /// Say when schedules fire next, and what is odd about those times
    Next(next::Args),
    /// List messages about runs, and whether they arrived
    Deliveries(deliveries::Args),
    /// Send a message once more
    Redeliver(redeliver::Args),
    /// List, build and remove the images workflows run in
    #[command(subcommand)]
    Images(images::Command),
    /// Remove what ended long ago and what nothing needs any more
    Gc(gc::Args),
    /// Save what can be read of a damaged database, and say how to begin anew
    Salvage(salvage::Args),
    /// Check Docker, models, disk and folders, and say what to do about what is wrong
    Doctor(doctor::Args),
    /// See the whole thing work: a year of readings, a scripted analyst, a real container
    Demo(demo::Args),
}

/// What every command gets.
#[derive(Debug)]
pub struct Context {
    /// `--project`
    pub project: Option<PathBuf>,
    /// Where to write.
    pub screen: Screen,
}

impl Context {
    /// Finds and opens the project.
    pub fn project(&self) -> Result<Project> {
        match &self.project {
            Some(root) => Project::open(&std::path::absolute(root).unwrap_or_else(|_| root.clone())),
            None => Project::find(&std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."))),
        }
    }

    /// What sandboxes of a project are made with.
    fn engines(&self, project: &Project) -> Engines {
        let screen = self.screen;
        Engines::new(project, move |warning| screen.diagnostic(warning))
    }
}

/// A value as one JSON document.
fn json(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| {
        crate::diagnostic::Diagnostic::new("cli::json", format!("this cannot be written as JSON: {error}"))
    })
}

/// How long the end of the process waits for sandboxes to go away.
const SETTLE: Duration = Duration::from_secs(5);

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0
    Succeeded,
    /// 1: an error.
    Failed,
    /// 2: wrong usage, or a mistake in a script or in tidemill.toml.
    Usage,
    /// 3: artifacts did not pass their checks.
    Rejected,
    /// 4: a guardrail stopped it.
    Denied,
    /// 5: a limit stopped it.
    Exhausted,
    /// 130: a person stopped it.
    Cancelled,
}

impl Exit {
    /// The process's exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Succeeded => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Rejected => 3,
            Self::Denied => 4,
            Self::Exhausted => 5,
            Self::Cancelled => 130,
        }
    }

    /// How a run's end state ends the process.
    pub fn of(state: RunState) -> Self {
        match state {
            RunState::Succeeded => Self::Succeeded,
            RunState::Rejected => Self::Rejected,
            RunState::Denied => Self::Denied,
            RunState::Exhausted => Self::Exhausted,
            RunState::Cancelled => Self::Cancelled,
            _ => Self::Failed,
        }
    }
}

impl Cli {
    /// Carries the command out. What it has to say is on the screen when it returns, errors included.
    pub async fn run(self) -> Exit {
        let context = Context { project: self.project, screen: Screen::new() };
        let done = match self.command {
            Command::Init(args) => init::run(&context, args).await,
            Command::Check(args) => check::run(&context, args).await,
            Command::Run(args) => run::run(&context, args).await,
            Command::Watch(args) => Box::pin(watch::run(&context, args)).await,
            Command::Workflows(args) => workflows::run(&context, args).await,
            Command::Inputs(args) => inputs::run(&context, args).await,
            Command::Runs(args) => runs::run(&context, args).await,
            Command::Show(args) => show::run(&context, args).await,
            Command::Logs(args) => logs::run(&context, args).await,
            Command::Retry(args) => retry::run(&context, args).await,
            Command::Quarantine(args) => quarantine::run(&context, args).await,
            Command::Cancel(args) => cancel::run(&context, args).await,
            Command::Pause(args) => pause::pause(&context, args).await,
            Command::Resume(args) => pause::resume(&context, args).await,
            Command::Drain(args) => drain::run(&context, args).await,
            Command::Status(args) => status::run(&context, args).await,
            Command::Explain(args) => explain::run(&context, args).await,
            Command::Next(args) => next::run(&context, args).await,
            Command::Deliveries(args) => deliveries::run(&context, args).await,
            Command::Redeliver(args) => redeliver::run(&context, args).await,
            Command::Images(command) => images::run(&context, command).await,
            Command::Gc(args) => gc::run(&context, args).await,
            Command::Salvage(args) => salvage::run(&context, args).await,
            Command::Doctor(args) => doctor::run(&context, args).await,
            Command::Demo(args) => demo::run(&context, args).await,
        };
        done.unwrap_or_else(|diagnostic| {
            context.screen.diagnostic(&diagnostic);
            match diagnostic.code().split("::").next() {
                Some("config" | "script" | "usage") => Exit::Usage,
                _ => Exit::Failed,
            }
        })
    }
}
