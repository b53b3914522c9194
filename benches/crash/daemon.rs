//! One life of the daemon.

use std::fs::File;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::project::{LIFE, Project};

/// A running `tidemill watch`.
pub struct Daemon {
    child: Child,
    /// Its process id.
    pub pid: u32,
}

/// What it can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Finish the runs in work.
    Interrupt,
    /// Break them off.
    Terminate,
}

impl Signal {
    fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "-INT",
            Self::Terminate => "-TERM",
        }
    }
}

impl Daemon {
    /// Starts the `number`th of a project.
    pub fn start(project: &Project, number: usize) -> Self {
        let talk = || File::options().create(true).append(true).open(project.talk()).expect("a log");
        let child = tidemill(project.root())
            .arg("watch")
            .env(LIFE, format!("life-{number:05}"))
            .stdout(talk())
            .stderr(talk())
            .kill_on_drop(true)
            .spawn()
            .expect("the tidemill binary");
        let pid = child.id().expect("a running process");
        Self { child, pid }
    }

    /// How it ended, when it has ended already.
    pub fn has_ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child of ours")
    }

    /// Tells it something.
    pub async fn tell(&self, signal: Signal) {
        let arguments = [signal.name(), &self.pid.to_string()];
        // Who has ended by itself is noticed below.
        let told = Command::new("kill").args(arguments).stderr(Stdio::null()).status();
        told.await.expect("the kill command");
    }

    /// Waits for its end, for so long at most.
    pub async fn ends(&mut self, within: Duration) -> Option<ExitStatus> {
        timeout(within, self.child.wait()).await.ok().map(|end| end.expect("an end"))
    }

    /// Ends it at once.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("killed");
    }
}

/// The program, in a project.
pub fn tidemill(root: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemill"));
    command.arg("--project").arg(root).stdin(Stdio::null()).env("NO_COLOR", "1");
    command
}
