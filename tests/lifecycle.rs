//! What happens to a sandbox from outside: every end has a name, nothing hangs, and nothing is left.

#![expect(clippy::unwrap_used, reason = "tests")]

mod container;
mod engine;
mod sweep;

use std::sync::Arc;
use std::time::Duration;

use tidemill::sandbox::docker::Docker;
use tidemill::sandbox::{Command, Engine as _, Executed, Sandbox, SandboxError};

use crate::support::engine::{repository, run_id, small_image, small_limits, spec};
use crate::support::stage::exists;
use crate::support::way::Way;

/// A command that may take as long as a test does.
fn command(argv: &[&str]) -> Command {
    Command { argv: argv.iter().map(|word| (*word).to_owned()).collect(), timeout: Duration::from_secs(60) }
}

fn text(done: &Executed) -> String {
    String::from_utf8_lossy(&done.output.head).into_owned() + &String::from_utf8_lossy(&done.output.tail)
}

/// The code a call ended with.
fn code<T: std::fmt::Debug>(outcome: Result<T, SandboxError>) -> String {
    match outcome {
        Err(SandboxError::Engine(diagnostic)) => diagnostic.code().to_owned(),
        other => panic!("{other:?}"),
    }
}

/// An engine at the end of a way of ours.
async fn engine_behind(way: &Way) -> Docker {
    let project = repository();
    let connecting =
        Docker::connect_to(way.host(), &project.root, &project.config.build, &project.config.bases);
    connecting.await.expect("these tests need a Docker engine")
}

/// A sandbox there.
async fn sandbox_of(engine: &Docker) -> Arc<dyn Sandbox> {
    let image = small_image().await;
    engine.start(&run_id(), &image, &spec(small_limits())).await.expect("a sandbox")
}

/// The `docker` command, for what a person does meanwhile.
async fn docker(arguments: &[&str]) {
    let done = tokio::process::Command::new("docker").args(arguments).output().await.unwrap();
    assert!(done.status.success(), "docker {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
}
