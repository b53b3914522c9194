//! The `git` program of this machine, kept from asking, from running what a repository brings, and from surprises.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

/// A repository that takes longer is not for an unattended run.
const LONGEST: Duration = Duration::from_secs(600);

/// What would point git at another repository, or give it other settings than ours.
const FOREIGN: [&str; 16] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_TEMPLATE_DIR",
    "GIT_SHALLOW_FILE",
    "GIT_GRAFT_FILE",
    "GIT_REPLACE_REF_BASE",
    "GIT_PREFIX",
    "GIT_ALLOW_PROTOCOL",
];

/// Settings of every call: no hooks, no monitors, no tidying behind our back.
const SETTINGS: [&str; 6] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.logAllRefUpdates=false",
    "maintenance.auto=false",
    "gc.auto=0",
    "advice.detachedHead=false",
];

/// Whose settings a call has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settings {
    /// The user's as well: how to reach a server, and with which key.
    User,
    /// Ours alone: no filter or driver of the machine runs on what is in a repository.
    Ours,
}

/// A call of git.
#[derive(Debug)]
pub(super) struct Git {
    arguments: Vec<OsString>,
    variables: Vec<(&'static str, OsString)>,
    settings: Settings,
}

/// Why a call failed: what git said, cut.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// There is no git.
    #[error("the program `git` cannot be started: {0}")]
    Missing(std::io::Error),
    /// It did not end.
    #[error("git took longer than ten minutes")]
    TimedOut,
    /// It ended badly.
    #[error("{0}")]
    Said(String),
}

impl Git {
    /// A call with these settings.
    pub(super) fn new(settings: Settings) -> Self {
        Self { arguments: Vec::new(), variables: Vec::new(), settings }
    }

    /// In that repository.
    pub(super) fn directory(self, folder: &Path) -> Self {
        self.argument("--git-dir").argument(folder)
    }

    /// One more argument.
    pub(super) fn argument(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// More arguments.
    pub(super) fn arguments<'a>(mut self, arguments: impl IntoIterator<Item = &'a str>) -> Self {
        self.arguments.extend(arguments.into_iter().map(OsString::from));
        self
    }

    /// An environment variable.
    pub(super) fn variable(mut self, name: &'static str, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name, value.as_ref().to_owned()));
        self
    }

    /// Runs it; gives what it printed. Dropping the future ends it.
    pub(super) async fn run(self) -> Result<String, Failure> {
        let mut command = Command::new("git");
        for name in FOREIGN {
            command.env_remove(name);
        }
        for setting in SETTINGS {
            command.arg("-c").arg(setting);
        }
        command
            .args(self.arguments)
            // Nobody is there to answer.
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ASKPASS", "")
            .env("SSH_ASKPASS_REQUIRE", "never")
            .env("LC_ALL", "C");
        if std::env::var_os("GIT_SSH_COMMAND").is_none() {
            command.env("GIT_SSH_COMMAND", "ssh -oBatchMode=yes");
        }
        if self.settings == Settings::Ours {
            command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        }
        for (name, value) in self.variables {
            command.env(name, value);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let running = command.spawn().map_err(Failure::Missing)?.wait_with_output();
        let done = tokio::time::timeout(LONGEST, running).await.map_err(|_| Failure::TimedOut)?;
        let done = done.map_err(Failure::Missing)?;
        if done.status.success() {
            return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
        }
        Err(Failure::Said(told(&done.stderr)))
    }
}

/// The first lines of what git said, as text that a terminal can show.
fn told(stderr: &[u8]) -> String {
    const LINES: usize = 6;
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<String> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .take(LINES)
        .map(|line| crate::event::input::printable(OsStr::new(line.trim())))
        .collect();
    if lines.is_empty() { "git said nothing".to_owned() } else { lines.join("; ") }
}
