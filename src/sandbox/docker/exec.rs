//! Running commands, and leaving nothing of them behind.

use std::time::Duration;

use bollard::container::LogOutput;
use bollard::exec::{StartExecOptions, StartExecResults};
use bollard::models::{ContainerUpdateBody, ExecConfig};
use bollard::query_parameters::TopOptionsBuilder;
use futures_util::{Stream, StreamExt as _};
use tokio::time::Instant;

use crate::sandbox::docker::container::{AGENT, Container, WORKSPACE};
use crate::sandbox::docker::errors::{explain, words};
use crate::sandbox::output::Gathering;
use crate::sandbox::{Command, Executed, SandboxError};

/// When nothing has been printed for this long, the engine is asked whether the command still runs: something it
/// left in the background may hold its output open for ever.
const QUIET: Duration = Duration::from_millis(200);
/// What a command that has ended still has in its pipe comes within this time.
const DRAIN: Duration = Duration::from_millis(100);
/// The init and the process that keeps the container alive.
const OWN_PROCESSES: usize = 2;
/// Room made for the command that kills the others, when they have taken it all.
const ROOM_TO_KILL: u64 = 64;
/// Tries to kill everything; one is enough but for a fork bomb.
const KILLS: u32 = 10;
/// A kill that takes longer did not work.
const KILL: Duration = Duration::from_secs(5);

/// A shell's exit code for a program that is not there.
const NOT_FOUND: i64 = 127;
/// A shell's exit code for a program that cannot be run; some engines use it for both.
const NOT_RUN: i64 = 126;
/// How the engine's own words begin when it could not run a program.
const RUNTIME_FAILED: &[u8] = b"OCI runtime exec failed";

type Printed = std::pin::Pin<Box<dyn Stream<Item = Result<LogOutput, bollard::errors::Error>> + Send>>;

/// How waiting for a command ended.
enum Waited {
    Ended,
    TimedOut,
    Broken(bollard::errors::Error),
}

impl Container {
    pub(super) async fn execute(&self, command: &Command) -> Result<Executed, SandboxError> {
        let start = Instant::now();
        let mut gathering = Gathering::default();
        let exec = match self.create_exec(&command.argv).await {
            Ok(exec) => exec,
            Err(error) => return Err(self.failed("run a command", error).await),
        };
        let mut printed = match self.start_exec(&exec).await {
            Ok(printed) => printed,
            Err(error) => return self.not_started(error, start).await,
        };
        let waited = self.wait(&exec, &mut printed, start + command.timeout, &mut gathering).await;
        let timed_out = match waited {
            Waited::Ended => false,
            Waited::TimedOut => true,
            Waited::Broken(error) => return Err(self.failed("follow a command", error).await),
        };
        // The engine first: a command that ended the container has no exit code to ask for.
        let least = u32::from(timed_out);
        if let Some(reason) = self.leave_nothing(least).await? {
            return Err(SandboxError::Gone(reason));
        }
        if timed_out {
            drain(&mut printed, &mut gathering).await;
        }
        let mut exit = if timed_out { None } else { self.exit_code(&exec).await? };
        let output = gathering.finish();
        if exit == Some(NOT_RUN)
            && output.head.starts_with(RUNTIME_FAILED)
            && names_nothing(&String::from_utf8_lossy(&output.head))
        {
            exit = Some(NOT_FOUND);
        }
        Ok(Executed { exit, timed_out, out_of_memory: 0, output, took: start.elapsed(), held: None })
    }

    async fn create_exec(&self, argv: &[String]) -> Result<String, bollard::errors::Error> {
        let config = ExecConfig {
            cmd: Some(argv.to_vec()),
            user: Some(AGENT.to_owned()),
            working_dir: Some(WORKSPACE.to_owned()),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            ..ExecConfig::default()
        };
        self.engine.client.create_exec(&self.id, config).await.map(|created| created.id)
    }

    async fn start_exec(&self, exec: &str) -> Result<Printed, bollard::errors::Error> {
        let options = StartExecOptions { detach: false, tty: false, output_capacity: Some(64 * 1024) };
        match self.engine.client.start_exec(exec, Some(options)).await? {
            StartExecResults::Attached { output, .. } => Ok(output),
            StartExecResults::Detached => Ok(Box::pin(futures_util::stream::empty())),
        }
    }

    /// A program that is not there is the command's fault, not the engine's.
    async fn not_started(
        &self,
        error: bollard::errors::Error,
        start: Instant,
    ) -> Result<Executed, SandboxError> {
        let text = words(&error);
        if !text.contains("exec failed") {
            return Err(self.failed("run a command", error).await);
        }
        let exit = if names_nothing(&text) { NOT_FOUND } else { NOT_RUN };
        let mut gathering = Gathering::default();
        gathering.take(text.trim().as_bytes());
        Ok(Executed {
            exit: Some(exit),
            timed_out: false,
            out_of_memory: 0,
            output: gathering.finish(),
            took: start.elapsed(),
            held: None,
        })
    }

    async fn wait(
        &self,
        exec: &str,
        printed: &mut Printed,
        deadline: Instant,
        gathering: &mut Gathering,
    ) -> Waited {
        loop {
            tokio::select! {
                piece = printed.next() => match piece {
                    Some(Ok(piece)) => gathering.take(&piece.into_bytes()),
                    Some(Err(error)) => return Waited::Broken(error),
                    None if self.is_running(exec).await => tokio::time::sleep(QUIET).await,
                    None => return Waited::Ended,
                },
                () = tokio::time::sleep_until(deadline) => return Waited::TimedOut,
                () = tokio::time::sleep(QUIET) => {
                    if !self.is_running(exec).await {
                        drain(printed, gathering).await;
                        return Waited::Ended;
                    }
                }
            }
            // A command that prints without pause never lets the timer above win.
            if Instant::now() >= deadline {
                return Waited::TimedOut;
            }
        }
    }

    async fn is_running(&self, exec: &str) -> bool {
        match self.engine.client.inspect_exec(exec).await {
            Ok(inspected) => inspected.running == Some(true),
            // The container is gone or the engine is: what follows finds out which.
            Err(_) => false,
        }
    }

    async fn exit_code(&self, exec: &str) -> Result<Option<i64>, SandboxError> {
        match self.engine.client.inspect_exec(exec).await {
            Ok(inspected) => Ok(inspected.exit_code),
            Err(error) => Err(self.failed("read a command's exit code", error).await),
        }
    }

    /// Kills every process of the agent's user, in at least so many attempts however few there seem to be. Gives the
    /// reason when the container is gone instead.
    async fn leave_nothing(&self, least: u32) -> Result<Option<String>, SandboxError> {
        let mut widened = false;
        let mut outcome = Ok(None);
        for attempt in 0..=KILLS {
            match self.processes().await {
                Ok(Some(count)) if count <= OWN_PROCESSES && attempt >= least => break,
                // An engine that does not count: one kill is enough but for a fork bomb.
                Ok(None) if attempt > 0 => break,
                Ok(_) if attempt == KILLS => {
                    let message = "processes of a command could not be killed";
                    outcome = Err(SandboxError::Engine(
                        crate::diagnostic::Diagnostic::new("sandbox::unkillable", message)
                            .help("the run ends here, and its container is removed with all that is in it"),
                    ));
                }
                Ok(_) => {
                    if !self.kill_all().await && !widened {
                        widened = self.limit_processes(self.pids + ROOM_TO_KILL).await;
                    }
                }
                Err(reason) => {
                    outcome = Ok(Some(reason));
                    break;
                }
            }
        }
        if widened {
            self.limit_processes(self.pids).await;
        }
        outcome
    }

    /// How many processes there are in the container, when the engine counts them, or why there is no container.
    async fn processes(&self) -> Result<Option<usize>, String> {
        // `stats` counts as well, and takes a second for it.
        let options = TopOptionsBuilder::default().ps_args("-eo pid").build();
        let top = self.engine.client.top_processes(&self.id, Some(options)).await;
        match top.ok().and_then(|top| top.processes).map(|processes| processes.len()) {
            Some(count) if count > 0 => Ok(Some(count)),
            _ => self.gone().await.map_or(Ok(None), Err),
        }
    }

    /// `kill -9 -1` as the agent's user: everything but the init and the keeper, at one stroke.
    async fn kill_all(&self) -> bool {
        let argv = ["sh", "-c", "kill -9 -1"].map(str::to_owned);
        let killing = async {
            let exec = self.create_exec(&argv).await.ok()?;
            let mut printed = self.start_exec(&exec).await.ok()?;
            let mut said = Gathering::default();
            drain_to_end(&mut printed, &mut said).await;
            // The shell is killed by its own kill on some systems: 137 is as good as 0.
            let code = self.engine.client.inspect_exec(&exec).await.ok()?.exit_code?;
            matches!(code, 0 | 137).then_some(())
        };
        tokio::time::timeout(KILL, killing).await.is_ok_and(|done| done.is_some())
    }

    async fn limit_processes(&self, pids: u64) -> bool {
        let update =
            ContainerUpdateBody { pids_limit: i64::try_from(pids).ok(), ..ContainerUpdateBody::default() };
        let updated = self.engine.client.update_container(&self.id, update).await;
        updated.map_err(|error| explain("limit processes", error)).is_ok()
    }
}

/// Whether the engine says that the program does not exist.
fn names_nothing(said: &str) -> bool {
    said.contains("not found") || said.contains("no such file")
}

async fn drain(printed: &mut Printed, gathering: &mut Gathering) {
    while let Ok(Some(Ok(piece))) = tokio::time::timeout(DRAIN, printed.next()).await {
        gathering.take(&piece.into_bytes());
    }
}

async fn drain_to_end(printed: &mut Printed, gathering: &mut Gathering) {
    while let Some(Ok(piece)) = printed.next().await {
        gathering.take(&piece.into_bytes());
    }
}
