//! The daemon: from queued runs to files put away, and from any crash back to work.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tidemill::diagnostic::{Diagnostic, Result};
use tidemill::event::What;
use tidemill::event::finding::Finding;
use tidemill::event::id::{Digest, RunId};
use tidemill::event::input::{Fingerprint, InputChange, InputFile, RawPath};
use tidemill::event::state::{InputState, RunState};
use tidemill::event::trigger::Trigger;
use tidemill::event::usage::Usage;
use tidemill::owner::Owner;
use tidemill::run::intake::notice::{Notice, Tell};
use tidemill::run::intake::stop::Stop;
use tidemill::run::intake::{Daemon, WorkflowRoute};
use tidemill::run::queue::Conduct;
use tidemill::store::{Claim, NewRun, RunFilter, RunRow, Store};
use tidemill::trigger::drop_folder::scan;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::route;
use crate::support::clock::ManualClock;
use crate::support::project::Project;

/// What the double does with the runs it gets, one after the other; `Succeed` when nothing is left to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Succeed,
    End(RunState),
    /// It fails with this code.
    Err(&'static str),
    /// It publishes, and then nothing can be recorded any more.
    PublishThenFull,
    Panic,
    /// Until it is told to stop.
    Wait,
    /// Until the test lets it go.
    Hold,
}

/// Carries runs out by the book of a test.
struct Double {
    store: Store,
    acts: Mutex<VecDeque<Act>>,
    let_go: Notify,
    begun: mpsc::UnboundedSender<RunRow>,
    working: AtomicUsize,
    most: AtomicUsize,
}

#[async_trait]
impl Conduct for Double {
    async fn conduct(&self, run: &RunRow, stop: CancellationToken) -> Result<RunState> {
        let now = self.working.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        let done = self.act(run, stop).await;
        self.working.fetch_sub(1, Ordering::SeqCst);
        done
    }
}

impl Double {
    async fn act(&self, run: &RunRow, stop: CancellationToken) -> Result<RunState> {
        let preparing = What::StateEntered { state: RunState::Preparing, reason: None };
        self.store.append(&run.id, preparing).await?;
        let _ = self.begun.send(run.clone());
        let act = self.acts.lock().unwrap().pop_front().unwrap_or(Act::Succeed);
        match act {
            Act::Succeed => self.end(run, RunState::Succeeded).await,
            Act::End(state) => self.end(run, state).await,
            Act::PublishThenFull => {
                let publishing = What::StateEntered { state: RunState::Publishing, reason: None };
                self.store.append(&run.id, publishing).await?;
                let folder = format!("outbox/energy/{}", run.id);
                self.store.append(&run.id, What::Published { folder, artifacts: Vec::new() }).await?;
                Err(Diagnostic::new("store::disk_full", "it went wrong").help("mend it"))
            }
            Act::Err(code) => Err(Diagnostic::new(code, "it went wrong").help("mend it")),
            Act::Panic => panic!("a mistake in a scene"),
            Act::Wait => {
                stop.cancelled().await;
                Ok(RunState::Running)
            }
            Act::Hold => {
                self.let_go.notified().await;
                self.end(run, RunState::Succeeded).await
            }
        }
    }

    async fn end(&self, run: &RunRow, state: RunState) -> Result<RunState> {
        let findings = vec![Finding::new("csv.min_rows", "it has no rows").path("output/a.csv")];
        if state == RunState::Rejected {
            self.store.append(&run.id, What::ChecksEnded { attempt: 0, findings }).await?;
        }
        let report = (state != RunState::Succeeded).then(|| {
            Diagnostic::new("run::told", format!("the test wants {state}")).help("ask the test").report()
        });
        let ended = What::RunEnded { state, report, usage: Usage::default(), cost: None };
        self.store.append(&run.id, ended).await?;
        Ok(state)
    }
}

/// A daemon at work, in a time that only the test moves.
pub(super) struct Watching {
    store: Store,
    clock: Arc<ManualClock>,
    double: Arc<Double>,
    begun: mpsc::UnboundedReceiver<RunRow>,
    notices: mpsc::UnboundedReceiver<Notice>,
    stop: Stop,
    task: tokio::task::JoinHandle<Result<()>>,
}

async fn open(project: &Project, routes: Vec<WorkflowRoute>, acts: &[Act]) -> Result<Watching> {
    let clock = Arc::new(ManualClock::new());
    let opened = project.open();
    let store = Store::open_with(&opened.state(), clock.clone()).await?;
    let (starts, begun) = mpsc::unbounded_channel();
    let double = Arc::new(Double {
        store: store.clone(),
        acts: Mutex::new(acts.iter().copied().collect()),
        let_go: Notify::new(),
        begun: starts,
        working: AtomicUsize::new(0),
        most: AtomicUsize::new(0),
    });
    let (say, notices) = mpsc::unbounded_channel();
    let tell = Tell::to(move |notice| drop(say.send(notice)));
    let lock = Daemon::lock(&opened)?;
    let daemon =
        Daemon::open(lock, &opened, store.clone(), clock.clone(), routes, double.clone(), tell).await?;
    let stop = Stop::new();
    let task = tokio::spawn(daemon.run(stop.clone()));
    Ok(Watching { store, clock, double, begun, notices, stop, task })
}

pub(super) async fn watching(project: &Project, acts: &[Act]) -> Watching {
    open(project, vec![route("energy", "**/*.csv")], acts).await.unwrap()
}

impl Watching {
    /// Lets time pass until something comes out of `next`.
    async fn pass<T>(clock: &ManualClock, next: impl Future<Output = T>) -> T {
        let passing = async {
            loop {
                clock.give_way().await;
                clock.advance(Duration::from_millis(50));
            }
        };
        tokio::select! {
            biased;
            done = soon(next) => done,
            () = passing => unreachable!("time passes for ever"),
        }
    }

    async fn put_away(&mut self) -> (InputState, PathBuf) {
        loop {
            if let Notice::PutAway { state, to, .. } =
                Self::pass(&self.clock, self.notices.recv()).await.unwrap()
            {
                return (state, to.map(|to| to.as_path().to_owned()).unwrap_or_default());
            }
        }
    }

    async fn begun(&mut self) -> RunRow {
        Self::pass(&self.clock, self.begun.recv()).await.unwrap()
    }

    async fn notice(&mut self, wanted: fn(&Notice) -> bool) -> Notice {
        loop {
            let notice = Self::pass(&self.clock, self.notices.recv()).await.unwrap();
            if wanted(&notice) {
                return notice;
            }
        }
    }

    async fn end(self) -> Result<()> {
        let Self { clock, task, store, double, .. } = self;
        let done = Self::pass(&clock, task).await.unwrap();
        drop((store, double));
        done
    }

    pub(super) async fn finish(self) {
        self.stop.finish();
        self.end().await.unwrap();
    }
}

#[tokio::test]
async fn a_file_whose_run_succeeds_is_processed() {
    let project = Project::new().file("inbox/energy/a.csv", "abc");
    let mut watching = watching(&project, &[]).await;
    let put = watching.put_away().await;
    assert_eq!(put, (InputState::Done, "processed/energy/a.csv".into()));
    watching.finish().await;
    assert_eq!(project.files("processed"), [Path::new("energy/a.csv")]);
    assert_eq!(fs::read(project.path("processed/energy/a.csv")).unwrap(), b"abc");
    assert!(project.files("inbox").is_empty());
    assert_eq!(fs::read_dir(project.path(".tidemill/claimed")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_file_whose_run_fails_has_the_reason_beside_it() {
    for (act, state, lines) in [
        (Act::End(RunState::Rejected), InputState::Rejected, "output/a.csv: it has no rows"),
        (Act::End(RunState::Denied), InputState::Failed, "the test wants denied [run::told]"),
        (Act::End(RunState::Exhausted), InputState::Failed, "energy was exhausted (run "),
        (
            Act::Err("image::build_failed"),
            InputState::Failed,
            "it went wrong [image::build_failed]\n  help: mend it",
        ),
        (Act::Panic, InputState::Failed, "the run broke off inside tidemill [run::broken]"),
    ] {
        let project = Project::new().file("inbox/energy/a.csv", "abc");
        let mut watching = watching(&project, &[act]).await;
        assert_eq!(watching.put_away().await, (state, "failed/energy/a.csv".into()), "{act:?}");
        let run = watching.begun().await.id;
        watching.finish().await;
        let reason = fs::read_to_string(project.path("failed/energy/a.csv.reason.txt")).unwrap();
        assert!(reason.contains(lines), "{act:?}: {reason}");
        assert!(reason.contains(&format!("tidemill show {run}")), "{reason}");
        assert!(reason.ends_with("move the file from failed back to inbox.\n"), "{reason}");
        assert_eq!(project.files("failed").len(), 2);
    }
}

#[tokio::test]
async fn a_file_with_two_runs_is_put_away_when_both_have_ended() {
    let project = Project::new().file("inbox/a.csv", "abc");
    let routes = vec![route("first", "*"), route("second", "*")];
    let acts = [Act::Succeed, Act::End(RunState::Failed)];
    let mut watching = open(&project, routes, &acts).await.unwrap();
    assert_eq!(watching.put_away().await, (InputState::Failed, "failed/a.csv".into()));
    watching.finish().await;
    let reason = fs::read_to_string(project.path("failed/a.csv.reason.txt")).unwrap();
    assert_eq!(reason.matches(" (run ").count(), 1, "{reason}");
    assert!(project.files("processed").is_empty());
}

#[tokio::test]
async fn nothing_in_processed_or_failed_is_ever_overwritten() {
    let project = Project::new()
        .file("processed/a.csv", "old")
        .file("failed/b.csv.reason.txt", "old")
        .file("inbox/a.csv", "new");
    let mut watching = watching(&project, &[Act::Succeed, Act::End(RunState::Failed)]).await;
    let run = watching.begun().await.id;
    let (_, to) = watching.put_away().await;
    assert_eq!(to, Path::new(&format!("processed/a-{run}.csv")));
    project.put("inbox/b.csv", "new");
    let run = watching.begun().await.id;
    let (_, to) = watching.put_away().await;
    assert_eq!(to, Path::new(&format!("failed/b-{run}.csv")));
    watching.finish().await;
    assert_eq!(fs::read(project.path("processed/a.csv")).unwrap(), b"old");
    assert_eq!(fs::read(project.path("failed/b.csv.reason.txt")).unwrap(), b"old");
    assert_eq!(project.files("failed").len(), 3);
}

#[tokio::test]
async fn so_many_runs_at_once_and_no_more() {
    let mut project = Project::new().config("[watch]\nconcurrency = 3\n");
    for number in 0..10 {
        project = project.file(format!("inbox/{number}.csv"), "abc");
    }
    let mut watching = watching(&project, &[Act::Hold; 3]).await;
    for _ in 0..3 {
        watching.begun().await;
    }
    watching.double.let_go.notify_waiters();
    for _ in 0..10 {
        watching.put_away().await;
    }
    assert_eq!(watching.double.most.load(Ordering::SeqCst), 3);
    watching.finish().await;
    assert_eq!(project.files("processed").len(), 10);
}

#[tokio::test]
async fn a_run_that_this_machine_cannot_begin_is_tried_as_often_as_it_takes() {
    for code in ["sandbox::no_engine", "store::disk_full"] {
        let project = Project::new().file("inbox/a.csv", "abc").file("inbox/b.csv", "abc");
        let acts =
            [Act::Err(code), Act::Succeed, Act::Err(code), Act::Err(code), Act::Err(code), Act::Err(code)];
        let project = project.config("[watch]\nconcurrency = 1\n");
        let mut watching = watching(&project, &acts).await;
        let first = watching.begun().await;
        // The other one does not wait for it.
        assert_ne!(watching.begun().await.id, first.id);
        for _ in 0..5 {
            let again = watching.begun().await;
            assert_eq!((&again.id, again.attempts), (&first.id, 1), "no fault of the run's");
        }
        for _ in 0..2 {
            assert_eq!(watching.put_away().await.0, InputState::Done);
        }
        let events = watching.store.all_events(&first.id).await.unwrap();
        let mut began = first.queued_at;
        let mut waits = Vec::new();
        for event in events {
            match event.what {
                What::StateEntered { state: RunState::Preparing, .. } => began = event.at,
                What::Postponed { again } => {
                    assert_eq!((again.of, again.why.message.as_str()), (None, "it went wrong"));
                    waits.push(again.at.duration_since(began).as_secs());
                }
                _ => {}
            }
        }
        assert_eq!(waits.len(), 5);
        assert!(waits[0] >= 30 && waits[4] >= 480, "{waits:?}");
        watching.finish().await;
    }
}

#[tokio::test]
async fn a_run_that_published_is_not_carried_out_again_whatever_failed_then() {
    let project = Project::new().file("inbox/a.csv", "abc");
    let mut watching = watching(&project, &[Act::PublishThenFull, Act::End(RunState::Failed)]).await;
    let run = watching.begun().await.id;
    assert_eq!(watching.put_away().await, (InputState::Done, "processed/a.csv".into()));
    assert_eq!(watching.store.run(&run).await.unwrap().unwrap().state, RunState::Succeeded);
    watching.finish().await;
}

#[tokio::test]
async fn a_service_that_fails_is_tried_three_times() {
    let project = Project::new().file("inbox/a.csv", "abc");
    let mut watching = watching(&project, &[Act::Err("model::overloaded"); 5]).await;
    for _ in 0..3 {
        assert_eq!(watching.begun().await.attempts, 1, "no process went down");
    }
    assert_eq!(watching.put_away().await, (InputState::Failed, "failed/a.csv".into()));
    watching.finish().await;
    let reason = fs::read_to_string(project.path("failed/a.csv.reason.txt")).unwrap();
    assert!(reason.contains("it went wrong [model::overloaded]"), "{reason}");
}

#[tokio::test]
async fn with_too_little_room_nothing_is_taken_and_it_is_said_once() {
    let project = Project::new().config("[watch]\nmin_free = \"4000TB\"\n").file("inbox/a.csv", "abc");
    let mut watching = watching(&project, &[]).await;
    let paused = watching.notice(|notice| matches!(notice, Notice::Paused { .. })).await;
    let Notice::Paused { what, why } = paused else { unreachable!() };
    assert_eq!((what, why.code.as_str()), ("taking files in", "watch::low_disk"));
    for _ in 0..10 {
        watching.clock.advance(Duration::from_secs(60));
        tokio::task::yield_now().await;
    }
    assert!(watching.notices.try_recv().is_err(), "it was said already");
    watching.finish().await;
    assert_eq!(project.files("inbox"), [Path::new("a.csv")]);
    // With room again the next one takes it.
    let project = project.config("");
    let mut next = self::watching(&project, &[]).await;
    assert_eq!(next.put_away().await.0, InputState::Done);
    next.finish().await;
}

#[tokio::test]
async fn runs_queued_by_another_process_are_found() {
    let project = Project::new();
    let mut watching = watching(&project, &[]).await;
    // What the other one claims never stood where this one looks.
    let other = Store::open(&project.path(".tidemill")).await.unwrap();
    project.put("elsewhere.csv", "abc");
    let change = InputChange {
        path: RawPath::new("a.csv"),
        fingerprint: version(&project.path("elsewhere.csv")),
        state: InputState::Ready,
        reason: None,
    };
    let taken = other.ready(std::slice::from_ref(&change)).await.unwrap().remove(0);
    let to = project.path(".tidemill").join(&taken.claimed_path);
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::rename(project.path("elsewhere.csv"), to).unwrap();
    let run = claim(&other, &change, taken.input).await;
    assert_eq!(watching.begun().await.id, run);
    other.close().await;
    assert_eq!(watching.put_away().await.0, InputState::Done);
    watching.finish().await;
}

#[tokio::test]
async fn a_file_that_cannot_be_put_away_is_as_soon_as_it_can() {
    let project = Project::new().file("inbox/a.csv", "abc").file("processed", "in the way");
    let mut watching = watching(&project, &[]).await;
    let warned = watching.notice(|notice| matches!(notice, Notice::Warned(_))).await;
    assert!(matches!(warned, Notice::Warned(report) if report.code == "watch::unmovable"));
    fs::remove_file(project.path("processed")).unwrap();
    assert_eq!(watching.put_away().await, (InputState::Done, "processed/a.csv".into()));
    watching.finish().await;
}

#[tokio::test]
async fn a_file_that_someone_takes_out_of_the_state_folder_is_gone() {
    let project = Project::new().file("inbox/a.csv", "abc");
    let mut watching = watching(&project, &[Act::Hold]).await;
    watching.begun().await;
    let claimed = project.files(".tidemill/claimed").remove(0);
    fs::remove_file(project.path(".tidemill/claimed").join(claimed)).unwrap();
    watching.double.let_go.notify_one();
    assert_eq!(watching.put_away().await, (InputState::Gone, PathBuf::new()));
    watching.finish().await;
    assert!(project.files("processed").is_empty());
}

#[tokio::test]
async fn an_inbox_that_is_not_there_at_the_start_is_waited_for() {
    let project = Project::new();
    fs::remove_dir(project.path("inbox")).unwrap();
    let mut watching = watching(&project, &[]).await;
    watching.notice(|notice| matches!(notice, Notice::InboxAbsent(_))).await;
    project.put("inbox/a.csv", "abc");
    watching.notice(|notice| matches!(notice, Notice::InboxBack(_))).await;
    assert_eq!(watching.put_away().await.0, InputState::Done);
    watching.finish().await;
}

#[tokio::test]
async fn one_project_is_watched_once() {
    let project = Project::new();
    let first = watching(&project, &[]).await;
    let second = open(&project, Vec::new(), &[]).await.err().unwrap();
    assert_eq!(second.code(), "watch::running");
    let pid = std::process::id().to_string();
    assert!(second.message().contains(&format!("by process {pid} since 20")), "{second}");
    assert!(Daemon::watches(&project.open()));
    first.finish().await;
    assert!(!Daemon::watches(&project.open()));
    watching(&project, &[]).await.finish().await;
}

#[tokio::test]
async fn folders_we_write_to_must_not_lie_in_the_inbox() {
    let project = Project::new().config("[folders]\nprocessed = \"inbox/done\"\n");
    let error = open(&project, Vec::new(), &[]).await.err().unwrap();
    assert_eq!(error.code(), "config::invalid");
    // Nor by way of a link.
    let project = Project::new().config("").file("inbox/out/a.csv", "");
    fs::remove_dir(project.path("outbox")).unwrap();
    std::os::unix::fs::symlink("inbox/out", project.path("outbox")).unwrap();
    let error = open(&project, Vec::new(), &[]).await.err().unwrap();
    assert_eq!(error.code(), "config::invalid");
}

#[tokio::test]
async fn the_first_stop_finishes_what_runs_and_takes_nothing_new() {
    let project =
        Project::new().config("[watch]\nconcurrency = 1\n").file("inbox/a.csv", "a").file("inbox/b.csv", "b");
    let mut watching = watching(&project, &[Act::Hold]).await;
    watching.begun().await;
    watching.stop.finish();
    let finishing = watching.notice(|notice| matches!(notice, Notice::Finishing(_))).await;
    assert_eq!(finishing, Notice::Finishing(1));
    watching.double.let_go.notify_one();
    let store = watching.store.clone();
    watching.end().await.unwrap();
    assert_eq!(project.files("processed").len(), 1);
    // The other one waits for the next daemon.
    assert_eq!(store.waiting(10).await.unwrap().len(), 1);
    let mut next = self::watching(&project, &[]).await;
    next.put_away().await;
    next.finish().await;
    assert_eq!(project.files("processed").len(), 2);
}

#[tokio::test]
async fn the_second_stop_breaks_runs_off_and_they_start_over() {
    let project = Project::new().file("inbox/a.csv", "abc");
    let mut watching = watching(&project, &[Act::Wait]).await;
    let run = watching.begun().await.id;
    watching.stop.interrupt();
    watching.notice(|notice| matches!(notice, Notice::Requeued(_))).await;
    let store = watching.store.clone();
    watching.end().await.unwrap();
    assert_eq!(store.run(&run).await.unwrap().unwrap().state, RunState::Queued);

    let mut next = self::watching(&project, &[]).await;
    let again = next.begun().await;
    assert_eq!((again.id, again.attempts), (run, 1), "a stop in good order is no failed attempt");
    assert_eq!(next.put_away().await.0, InputState::Done);
    next.finish().await;
}

#[tokio::test]
async fn a_run_that_does_not_stop_is_let_go_of() {
    let project = Project::new().file("inbox/a.csv", "abc");
    let mut watching = watching(&project, &[Act::Hold]).await;
    let run = watching.begun().await.id;
    watching.stop.interrupt();
    let store = watching.store.clone();
    watching.end().await.unwrap();
    assert_eq!(store.run(&run).await.unwrap().unwrap().state, RunState::Queued);
}

/// A run left in the middle by a process that died.
pub(super) async fn left_behind(project: &Project, attempts: usize, last: Option<What>) -> RunId {
    let (store, run) = claimed(project).await;
    for attempt in 1..=attempts {
        store.take(&run, &Owner::this_process().unwrap()).await.unwrap().unwrap();
        if attempt < attempts {
            let over = What::StateEntered { state: RunState::Queued, reason: None };
            store.append(&run, over).await.unwrap();
        }
    }
    let running = What::StateEntered { state: RunState::Running, reason: None };
    store.append(&run, running).await.unwrap();
    if let Some(last) = last {
        store.append(&run, last).await.unwrap();
    }
    store.close().await;
    run
}

/// The ledger and the disk with one file claimed for one run.
async fn claimed(project: &Project) -> (Store, RunId) {
    let store = Store::open(&project.path(".tidemill")).await.unwrap();
    let (change, taken) = ready(project, &store).await;
    take(project, &taken);
    let run = claim(&store, &change, taken.input).await;
    (store, run)
}

async fn ready(project: &Project, store: &Store) -> (InputChange, tidemill::store::Taken) {
    project.put("inbox/a.csv", "abc");
    let change = InputChange {
        path: RawPath::new("a.csv"),
        fingerprint: version(&project.path("inbox/a.csv")),
        state: InputState::Ready,
        reason: None,
    };
    let taken = store.ready(std::slice::from_ref(&change)).await.unwrap().remove(0);
    (change, taken)
}

fn version(path: &Path) -> Fingerprint {
    scan::fingerprint(&fs::symlink_metadata(path).unwrap())
}

fn take(project: &Project, taken: &tidemill::store::Taken) {
    let to = project.path(".tidemill").join(&taken.claimed_path);
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::rename(project.path("inbox/a.csv"), to).unwrap();
}

async fn claim(store: &Store, change: &InputChange, input: i64) -> RunId {
    let id = RunId::parse("20261130-230000-aaaa").unwrap();
    let run = NewRun {
        inputs: vec![InputFile { path: change.path.clone(), size: 3, digest: Digest::of("abc") }],
        input: Some(input),
        ..NewRun::new(
            id.clone(),
            "energy",
            Trigger::Drop,
            Digest::of("script"),
            "analyst",
            "2026-11-30T23:00:00Z".parse().unwrap(),
        )
    };
    let claim = Claim { input, fingerprint: change.fingerprint, digest: Digest::of("abc"), runs: vec![run] };
    store.claim(&[claim]).await.unwrap();
    id
}

/// Whatever stood there before: it ends with one run, and the file in `processed/`.
async fn comes_through(project: &Project, point: &str) {
    let mut watching = watching(project, &[]).await;
    watching.put_away().await;
    let store = watching.store.clone();
    watching.finish().await;
    let runs = store.runs(&RunFilter::default()).await.unwrap();
    assert_eq!(runs.len(), 1, "{point}");
    assert_eq!(runs[0].state, RunState::Succeeded, "{point}");
    assert_eq!(project.files("processed"), [Path::new("a.csv")], "{point}");
    assert_eq!(fs::read(project.path("processed/a.csv")).unwrap(), b"abc", "{point}");
    for folder in ["inbox", "failed", ".tidemill/claimed"] {
        assert!(project.files(folder).is_empty(), "{point}: {folder} {:?}", project.files(folder));
    }
}

#[tokio::test]
async fn a_process_killed_between_ready_and_moved_loses_nothing() {
    let project = Project::new();
    let store = Store::open(&project.path(".tidemill")).await.unwrap();
    ready(&project, &store).await;
    store.close().await;
    comes_through(&project, "ready").await;
}

#[tokio::test]
async fn a_process_killed_between_moved_and_claimed_loses_nothing() {
    let project = Project::new();
    let store = Store::open(&project.path(".tidemill")).await.unwrap();
    let (_, taken) = ready(&project, &store).await;
    take(&project, &taken);
    store.close().await;
    comes_through(&project, "moved").await;
}

#[tokio::test]
async fn a_process_killed_while_it_copied_to_another_file_system_leaves_no_second_file() {
    let project = Project::new();
    let store = Store::open(&project.path(".tidemill")).await.unwrap();
    let (_, taken) = ready(&project, &store).await;
    let to = project.path(".tidemill").join(&taken.claimed_path);
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::write(to.with_file_name(".taking-x"), "ab").unwrap();
    fs::copy(project.path("inbox/a.csv"), &to).unwrap();
    store.close().await;
    comes_through(&project, "copied").await;
}

#[tokio::test]
async fn a_file_put_back_never_replaces_a_new_one() {
    let project = Project::new();
    let store = Store::open(&project.path(".tidemill")).await.unwrap();
    let (_, taken) = ready(&project, &store).await;
    take(&project, &taken);
    project.put("inbox/a.csv", "a new one");
    store.close().await;
    let mut watching = watching(&project, &[]).await;
    let mut ends = vec![watching.put_away().await.1, watching.put_away().await.1];
    watching.finish().await;
    ends.sort();
    let again = format!("processed/a-again-{}.csv", taken.input);
    assert_eq!(ends, [Path::new(&again), Path::new("processed/a.csv")]);
    assert_eq!(fs::read(project.path(again)).unwrap(), b"abc");
}

#[tokio::test]
async fn a_process_killed_after_the_claim_runs_it_once() {
    let project = Project::new();
    claimed(&project).await.0.close().await;
    comes_through(&project, "claimed").await;
}

#[tokio::test]
async fn a_move_that_did_not_reach_the_disk_is_made_again() {
    let project = Project::new();
    let store = Store::open(&project.path(".tidemill")).await.unwrap();
    let (change, taken) = ready(&project, &store).await;
    claim(&store, &change, taken.input).await;
    store.close().await;
    comes_through(&project, "claimed, not moved").await;
}

#[tokio::test]
async fn a_process_killed_in_the_middle_of_a_run_starts_it_over() {
    let project = Project::new();
    left_behind(&project, 1, None).await;
    comes_through(&project, "running").await;
}

pub(super) fn ended(state: RunState) -> What {
    What::RunEnded { state, report: None, usage: Usage::default(), cost: None }
}

#[tokio::test]
async fn a_process_killed_after_the_run_ended_puts_the_file_away() {
    let project = Project::new();
    left_behind(&project, 1, Some(ended(RunState::Succeeded))).await;
    // Put away while the daemon opens: nobody runs it again.
    let watching = watching(&project, &[Act::End(RunState::Failed)]).await;
    watching.finish().await;
    assert_eq!(project.files("processed"), [Path::new("a.csv")]);
}

#[tokio::test]
async fn a_process_killed_while_it_put_a_file_away_knows_where_it_went() {
    for moved in [false, true] {
        let project = Project::new();
        let run = left_behind(&project, 1, Some(ended(RunState::Succeeded))).await;
        let store = Store::open(&project.path(".tidemill")).await.unwrap();
        let input = store.run(&run).await.unwrap().unwrap().input.unwrap();
        store.bound_for(input, Path::new("processed/a.csv")).await.unwrap();
        if moved {
            fs::create_dir(project.path("processed")).unwrap();
            fs::rename(store.claimed(input).await.unwrap().unwrap(), project.path("processed/a.csv"))
                .unwrap();
        }
        store.close().await;
        let watching = watching(&project, &[]).await;
        let row = watching.store.input(input).await.unwrap().unwrap();
        assert_eq!(row.state, InputState::Done, "moved: {moved}");
        watching.finish().await;
        assert_eq!(project.files("processed"), [Path::new("a.csv")], "moved: {moved}");
    }
}

#[tokio::test]
async fn a_run_that_published_before_the_crash_is_not_done_again() {
    let project = Project::new();
    let published = What::Published { folder: "outbox/energy/a-1".to_owned(), artifacts: Vec::new() };
    let run = left_behind(&project, 1, Some(published)).await;
    let watching = watching(&project, &[Act::End(RunState::Failed)]).await;
    let row = watching.store.run(&run).await.unwrap().unwrap();
    assert_eq!(row.state, RunState::Succeeded);
    watching.finish().await;
    assert_eq!(project.files("processed"), [Path::new("a.csv")]);
}

#[tokio::test]
async fn a_run_that_brings_the_process_down_again_and_again_at_one_point_fails() {
    let project = Project::new();
    let run = left_behind(&project, 10, None).await;
    let watching = watching(&project, &[]).await;
    let row = watching.store.run(&run).await.unwrap().unwrap();
    assert_eq!(row.state, RunState::Failed);
    assert_eq!(row.report.unwrap().message, "interrupted 10 times without coming any further");
    watching.finish().await;
    let reason = fs::read_to_string(project.path("failed/a.csv.reason.txt")).unwrap();
    assert!(reason.contains("without coming any further [run::interrupted]"), "{reason}");
}

#[tokio::test]
async fn a_run_started_by_hand_is_left_to_who_started_it() {
    let project = Project::new();
    let store = Store::open(&project.path(".tidemill")).await.unwrap();
    let run = NewRun::new(
        RunId::parse("20261130-230000-hand").unwrap(),
        "energy",
        Trigger::Manual,
        Digest::of("script"),
        "analyst",
        "2026-11-30T23:00:00Z".parse().unwrap(),
    );
    store.queue_run(run.clone()).await.unwrap();
    let mut watching = watching(&project, &[]).await;
    project.put("inbox/a.csv", "abc");
    watching.put_away().await;
    watching.finish().await;
    assert_eq!(store.run(&run.id).await.unwrap().unwrap().state, RunState::Queued);
}

/// Only a guard against hanging for ever: nothing is measured.
pub(super) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(120), what).await.expect("a hint")
}
