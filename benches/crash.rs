//! `cargo bench --bench crash [-- --kills N] [--seconds S] [--seed X]`: `tidemill watch`, ended with SIGKILL again and
//! again at random moments, and now and then told to stop.
//!
//! Files are dropped and a schedule fires meanwhile; the runs use containers, local sandboxes and none, and models behind
//! servers that outlive every daemon. Whatever a daemon is at when it ends (starting, recovering, claiming, preparing,
//! waiting for an answer, running a command, checking, publishing, putting away), the next one must go on from there. In
//! the end the last daemon works off what is left, and the proofs are made: each a line with its numbers.
//!
//! With `--profile dev` nothing needs to be built for release. When a proof fails, the project is kept and its place said.

#![expect(
    clippy::expect_used,
    clippy::large_futures,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on says so and ends"
)]

#[path = "crash/actor.rs"]
mod actor;
#[path = "crash/daemon.rs"]
mod daemon;
#[path = "crash/drops.rs"]
mod drops;
#[path = "../tests/support/engine.rs"]
#[allow(dead_code, unused_imports, reason = "the tests use the rest")]
mod engine;
#[path = "crash/evidence.rs"]
mod evidence;
#[path = "crash/kind.rs"]
mod kind;
#[path = "crash/lives.rs"]
mod lives;
#[path = "crash/models.rs"]
mod models;
#[path = "crash/moment.rs"]
mod moment;
#[path = "crash/options.rs"]
mod options;
#[path = "crash/project.rs"]
mod project;
#[path = "crash/proofs/mod.rs"]
mod proofs;
#[path = "crash/talk.rs"]
mod talk;
#[path = "../tests/support/wire.rs"]
#[allow(dead_code, unused_imports, reason = "the tests use the rest")]
mod wire;

use std::collections::BTreeSet;
use std::process::ExitCode;

use clap::Parser as _;

use crate::daemon::tidemill;
use crate::evidence::Evidence;
use crate::lives::Lives;
use crate::models::Models;
use crate::options::Options;
use crate::project::Project;
use crate::proofs::Proof;

/// So much is shown of what is wrong with one thing, and of the runs it concerns.
const SHOWN: usize = 5;

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    let seed = options.seed.unwrap_or_else(|| fastrand::u64(..));
    println!("seed {seed}");
    let models = Models::start().await;
    let [responses, chat] = models.urls();
    let project = Project::new(&engine::small_image().await.digest, &responses, &chat);
    let mut lives = Lives::new(&project, &models, seed);
    lives.end_one_after_another(&options).await;
    lives.work_off().await;
    let store = evidence::store(&project).await;
    let (runs, inputs) = evidence::recorded(&store).await;
    store.close().await;
    let evidence = Evidence {
        project: &project,
        dropped: &lives.dropper.dropped,
        spoilt: &lives.dropper.spoilt,
        asks: models.asks(),
        complaints: models.complaints(),
        pids: &lives.pids,
        ends: &lives.ends,
        fallen: &lives.fallen,
        runs,
        inputs,
        outbox: evidence::outbox(&project),
    };
    let proofs = proofs::all(&evidence).await;
    for proof in &proofs {
        tell(proof);
    }
    if proofs.iter().all(|proof| proof.wrong.is_empty()) {
        return ExitCode::SUCCESS;
    }
    show_runs(&project, &proofs).await;
    println!("\nthe project is kept: {}", project.keep().display());
    ExitCode::FAILURE
}

fn tell(proof: &Proof) {
    let Proof { name, numbers, wrong } = proof;
    if wrong.is_empty() {
        println!("ok      {name:<40} {numbers}");
        return;
    }
    println!("FAILED  {name:<40} {numbers}; wrong {} times", wrong.len());
    for one in wrong.iter().take(SHOWN) {
        println!("          {} {}", one.run.as_deref().unwrap_or("-"), one.what);
    }
}

/// The first runs something is wrong with.
async fn show_runs(project: &Project, proofs: &[Proof]) {
    let wrong = proofs.iter().flat_map(|proof| &proof.wrong);
    let runs: BTreeSet<&str> = wrong.filter_map(|wrong| wrong.run.as_deref()).collect();
    for run in runs.into_iter().take(SHOWN) {
        let shown = tidemill(project.root()).args(["show", run]).output().await.expect("the tidemill binary");
        println!("\n{}", String::from_utf8_lossy(&shown.stdout));
    }
}
