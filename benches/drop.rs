//! `cargo bench --bench drop [-- FILES UNCHANGED]`: the drop folder in numbers.
//!
//! So many files at once and how soon all have their runs; how long a look at so many files takes that are known and
//! unchanged; and how long after it counts as complete a single file has its run. Runs end at once: what is measured is
//! the way to them. Compare runs of one machine with each other, not with another machine's.

#![expect(clippy::expect_used, clippy::print_stdout, reason = "a benchmark that cannot run says so and ends")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tempfile::TempDir;
use tidemill::clock::SystemClock;
use tidemill::config::Project;
use tidemill::diagnostic::Result;
use tidemill::event::What;
use tidemill::event::id::Digest;
use tidemill::event::state::RunState;
use tidemill::event::usage::Usage;
use tidemill::run::intake::desk::Desk;
use tidemill::run::intake::notice::{Notice, Tell};
use tidemill::run::intake::stop::Stop;
use tidemill::run::intake::{Daemon, WorkflowRoute};
use tidemill::run::queue::Conduct;
use tidemill::store::{RunFilter, RunRow, Store};
use tidemill::trigger::drop_folder::scope::Scope;
use tidemill::trigger::drop_folder::watch::Watch;
use tidemill::workflow::sandbox::Kind;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

const FILES: usize = 10_000;
const UNCHANGED: usize = 100_000;
/// Files dropped one after the other.
const SINGLE: usize = 100;
/// Files in a folder.
const FOLDER: usize = 1000;
/// How long a file must be quiet.
const SETTLE: Duration = Duration::from_millis(100);

/// Ends every run at once.
struct Ends(Store);

#[async_trait]
impl Conduct for Ends {
    async fn conduct(&self, run: &RunRow, _stop: CancellationToken) -> Result<RunState> {
        let state = RunState::Succeeded;
        let ended = What::RunEnded { state, report: None, usage: Usage::default(), cost: None };
        self.0.append(&run.id, ended).await?;
        Ok(state)
    }
}

#[tokio::main]
async fn main() {
    let asked: Vec<usize> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    at_once(asked.first().copied().unwrap_or(FILES)).await;
    unchanged(asked.get(1).copied().unwrap_or(UNCHANGED)).await;
    one_by_one().await;
}

fn project() -> (TempDir, Project) {
    let folder = TempDir::with_prefix("tidemill-bench-").expect("a temporary folder");
    fs::create_dir(folder.path().join("inbox")).expect("an inbox");
    let settings = format!("[watch]\nsettle = \"{}ms\"\n", SETTLE.as_millis());
    fs::write(folder.path().join("tidemill.toml"), settings).expect("settings");
    let project = Project::open(folder.path()).expect("a project");
    (folder, project)
}

fn route(glob: &str) -> WorkflowRoute {
    WorkflowRoute {
        workflow: "bench".into(),
        globs: vec![glob.into()],
        schedules: Vec::new(),
        model: "none".into(),
        bundle: Digest::of("script"),
        sandbox: Kind::None,
    }
}

fn fill(inbox: &Path, files: usize) {
    for number in 0..files {
        let folder = inbox.join((number / FOLDER).to_string());
        if number % FOLDER == 0 {
            fs::create_dir(&folder).expect("a folder");
        }
        fs::write(folder.join(format!("{number}.csv")), number.to_string()).expect("a file");
    }
}

/// A daemon at work, and the moments at which files were claimed.
async fn watch(
    project: &Project,
    store: &Store,
) -> (Stop, tokio::task::JoinHandle<Result<()>>, mpsc::UnboundedReceiver<Instant>) {
    let (say, claims) = mpsc::unbounded_channel();
    let tell = Tell::to(move |notice| {
        if matches!(notice, Notice::Claimed { .. }) {
            let _ = say.send(Instant::now());
        }
    });
    let lock = Daemon::lock(project).expect("the lock");
    let (clock, ends) = (Arc::new(SystemClock::new()), Arc::new(Ends(store.clone())));
    let daemon = Daemon::open(lock, project, store.clone(), clock, vec![route("**/*.csv")], ends, tell);
    let daemon = daemon.await.expect("a daemon");
    let stop = Stop::new();
    let task = tokio::spawn(daemon.run(stop.clone()));
    (stop, task, claims)
}

/// All files stand there when watching begins.
async fn at_once(files: usize) {
    let (_folder, project) = project();
    fill(&project.inbox(), files);
    let store = Store::open(&project.state()).await.expect("a store");
    let start = Instant::now();
    let (stop, task, mut claims) = watch(&project, &store).await;
    let mut last = start;
    for _ in 0..files {
        last = claims.recv().await.expect("a claimed file");
    }
    stop.finish();
    task.await.expect("the daemon").expect("no error");
    let runs = store.runs(&RunFilter::default()).await.expect("runs");
    let inputs: BTreeSet<_> = runs.iter().filter_map(|run| run.input).collect();
    println!(
        "{files} files at once: all in the ledger with their runs after {:.1} s, {} lost, {} twice, peak {} MiB",
        last.duration_since(start).as_secs_f64(),
        files.saturating_sub(inputs.len()),
        runs.len() - inputs.len(),
        peak_kib() / 1024
    );
}

/// Files that are known and that no workflow is for.
async fn unchanged(files: usize) {
    let (_folder, project) = project();
    fill(&project.inbox(), files);
    let store = Store::open(&project.state()).await.expect("a store");
    let clock = Arc::new(SystemClock::new());
    let desk = Desk::open(&project, store, clock, vec![route("*.none")], Tell::default());
    let mut desk = desk.await.expect("a desk");
    let mut watch = Watch::new(&project.inbox());
    for what in ["the first look at", "a look again at"] {
        let start = Instant::now();
        let scan = watch.look(Scope::All).expect("a look");
        let looked = start.elapsed();
        desk.tick(&scan).await.expect("it was taken in");
        let (looked, all) = (looked.as_secs_f64(), start.elapsed().as_secs_f64());
        println!("{what} {files} files: {all:.2} s, {looked:.2} s of it on the disk");
    }
}

/// From the moment a file counts as complete to its run.
async fn one_by_one() {
    let (_folder, project) = project();
    let store = Store::open(&project.state()).await.expect("a store");
    let (stop, task, mut claims) = watch(&project, &store).await;
    let mut late = Vec::new();
    for number in 0..SINGLE {
        fs::write(project.inbox().join(format!("{number}.csv")), "x").expect("a file");
        let complete = Instant::now() + SETTLE;
        late.push(claims.recv().await.expect("a claimed file").saturating_duration_since(complete));
    }
    stop.finish();
    task.await.expect("the daemon").expect("no error");
    late.sort();
    let (middle, high) = (late[SINGLE / 2], late[SINGLE * 95 / 100]);
    println!("complete to run: p50 {:.1} ms, p95 {:.1} ms", millis(middle), millis(high));
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// The most memory this process has had, in KiB.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or_default()
}
