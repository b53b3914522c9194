//! The loop in a time that only the test moves.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use tidemill::clock::Clock as _;
use tidemill::diagnostic::Result;
use tidemill::event::What;
use tidemill::event::id::{Digest, RunId};
use tidemill::event::state::RunState;
use tidemill::event::usage::Usage;
use tidemill::run::abandoned;
use tidemill::run::intake::notice::{Notice, Tell};
use tidemill::run::intake::stop::Stop;
use tidemill::run::intake::{Daemon, WorkflowRoute};
use tidemill::run::queue::Conduct;
use tidemill::store::{Fire, Made, RunFilter, RunRow, Store};
use tidemill::workflow::schedule::{Missed, Overlap, Schedule};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::{at, hourly, new_run};
use crate::support::clock::ManualClock;
use crate::support::project::Project;

/// When the runs of a double end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    AtOnce,
    /// When the test lets them.
    LetGo,
}

struct Double {
    store: Store,
    end: End,
    let_go: Notify,
    ended: mpsc::UnboundedSender<RunId>,
}

#[async_trait]
impl Conduct for Double {
    async fn conduct(&self, run: &RunRow, _: CancellationToken) -> Result<RunState> {
        if self.end == End::LetGo {
            self.let_go.notified().await;
        }
        let ended =
            What::RunEnded { state: RunState::Succeeded, report: None, usage: Usage::default(), cost: None };
        self.store.append(&run.id, ended).await?;
        let _ = self.ended.send(run.id.clone());
        Ok(RunState::Succeeded)
    }
}

/// A daemon at work.
struct Watching {
    store: Store,
    clock: Arc<ManualClock>,
    double: Arc<Double>,
    ended: mpsc::UnboundedReceiver<RunId>,
    notices: mpsc::UnboundedReceiver<Notice>,
    stop: Stop,
    task: tokio::task::JoinHandle<Result<()>>,
}

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), what).await.unwrap()
}

/// Opens a daemon when the wall shows `now`.
async fn open(project: &Project, now: &str, schedule: &Schedule, end: End) -> Watching {
    let clock = Arc::new(ManualClock::new());
    clock.set_wall(at(now));
    let opened = project.open();
    let store = Store::open_with(&opened.state(), clock.clone()).await.unwrap();
    let (tells_end, ended) = mpsc::unbounded_channel();
    let double = Arc::new(Double { store: store.clone(), end, let_go: Notify::new(), ended: tells_end });
    let (say, notices) = mpsc::unbounded_channel();
    let tell = Tell::to(move |notice| drop(say.send(notice)));
    let route = WorkflowRoute {
        workflow: "report".to_owned(),
        globs: Vec::new(),
        schedules: vec![schedule.clone()],
        model: "analyst".to_owned(),
        bundle: Digest::of("script"),
        sandbox: tidemill::workflow::sandbox::Kind::None,
    };
    let daemon = Daemon::open(&opened, store.clone(), clock.clone(), vec![route], double.clone(), tell);
    let daemon = daemon.await.unwrap();
    let stop = Stop::new();
    let task = tokio::spawn(daemon.run(stop.clone()));
    Watching { store, clock, double, ended, notices, stop, task }
}

impl Watching {
    /// Lets time pass until something comes out of `next`, but not while the daemon has something to do.
    async fn pass<T>(clock: &ManualClock, next: impl Future<Output = T>) -> T {
        /// The intake and the schedules.
        const SLEEPERS: usize = 2;
        let passing = async {
            loop {
                // Those who were woken go to work before they are counted.
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                }
                if clock.sleepers() >= SLEEPERS {
                    clock.advance(Duration::from_secs(5));
                }
            }
        };
        tokio::select! {
            biased;
            done = soon(next) => done,
            () = passing => unreachable!("time passes for ever"),
        }
    }

    /// The next instant that made a run.
    async fn fired(&mut self) -> Timestamp {
        loop {
            if let Notice::Fired { at, .. } = Self::pass(&self.clock, self.notices.recv()).await.unwrap() {
                return at;
            }
        }
    }

    /// The end of a run that was queued; no time passes.
    async fn ended(&mut self) -> RunId {
        soon(self.ended.recv()).await.unwrap()
    }

    /// Lets the loop look at a clock that was set.
    async fn look(&self) {
        Self::pass(&self.clock, self.clock.sleep(Duration::from_secs(40))).await;
    }

    async fn instants(&self) -> Vec<String> {
        let mut found = Vec::new();
        for run in self.store.runs(&RunFilter::default()).await.unwrap() {
            let fired = self.store.fired(&run.id).await.unwrap().unwrap();
            found.push(format!("{} +{}", fired.at, fired.missed));
        }
        found.reverse();
        found
    }

    async fn finish(self) {
        self.stop.finish();
        Self::pass(&self.clock, self.task).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn every_instant_makes_a_run_that_is_carried_out() {
    let project = Project::new();
    let mut watching = open(&project, "2026-12-01T05:30:00Z", &hourly(), End::AtOnce).await;
    for hour in ["06", "07", "08"] {
        assert_eq!(watching.fired().await, at(&format!("2026-12-01T{hour}:00:00Z")));
        watching.ended().await;
    }
    let wanted = ["2026-12-01T06:00:00Z +0", "2026-12-01T07:00:00Z +0", "2026-12-01T08:00:00Z +0"];
    assert_eq!(watching.instants().await, wanted);
    watching.finish().await;
}

#[tokio::test]
async fn what_passed_while_nobody_watched_goes_by_the_policy() {
    for (missed, wanted) in [
        (Missed::Skip, &["2026-12-01T06:00:00Z +0", "2026-12-01T12:00:00Z +5"][..]),
        (Missed::Latest, &["2026-12-01T06:00:00Z +0", "2026-12-01T11:00:00Z +4", "2026-12-01T12:00:00Z +0"]),
    ] {
        let project = Project::new();
        let schedule = Schedule { missed, ..hourly() };
        let mut first = open(&project, "2026-12-01T05:59:00Z", &schedule, End::AtOnce).await;
        first.fired().await;
        first.ended().await;
        first.finish().await;
        let mut second = open(&project, "2026-12-01T11:30:00Z", &schedule, End::AtOnce).await;
        while second.fired().await < at("2026-12-01T12:00:00Z") {
            second.ended().await;
        }
        assert_eq!(second.instants().await, wanted, "{missed:?}");
        second.finish().await;
    }
}

#[tokio::test]
async fn a_process_killed_after_the_run_was_queued_makes_no_second_one() {
    let project = Project::new();
    let mut first = open(&project, "2026-12-01T05:59:00Z", &hourly(), End::AtOnce).await;
    first.fired().await;
    let run = first.ended().await;
    let before = first.store.standing("report/1").await.unwrap().unwrap();
    first.finish().await;
    // As if what was decided had never reached the disk.
    let store = Store::open(&project.path(".tidemill")).await.unwrap();
    let decided = tidemill::workflow::schedule::Standing { decided: at("2026-12-01T05:59:00Z"), ..before };
    store.decide("report/1", decided).await.unwrap();
    store.close().await;
    let mut second = open(&project, "2026-12-01T06:00:30Z", &hourly(), End::AtOnce).await;
    assert_eq!(second.fired().await, at("2026-12-01T07:00:00Z"));
    assert_ne!(second.ended().await, run);
    assert_eq!(second.instants().await[..2], ["2026-12-01T06:00:00Z +0", "2026-12-01T07:00:00Z +0"]);
    second.finish().await;
}

#[tokio::test]
async fn a_run_that_a_dead_process_left_is_carried_out() {
    for state in [RunState::Queued, RunState::Running] {
        let project = Project::new();
        let store = Store::open(&project.path(".tidemill")).await.unwrap();
        let declared = hourly();
        let run = new_run("20261130-230000-aaaa");
        let (id, instant) = (run.id.clone(), at("2026-11-30T23:00:00Z"));
        let fire =
            Fire { schedule: "report/1", declared: &declared, at: instant, missed: 0, start_by: None, run };
        assert_eq!(store.fire(&fire).await.unwrap(), Made::This);
        if state != RunState::Queued {
            store.append(&id, What::StateEntered { state, reason: None }).await.unwrap();
        }
        assert_eq!(abandoned::bury(&project.open(), &store).await.unwrap(), 0, "nobody started it by hand");
        store.close().await;
        let mut watching = open(&project, "2026-12-01T05:30:00Z", &hourly(), End::AtOnce).await;
        assert_eq!(watching.ended().await, id, "{state}");
        watching.finish().await;
    }
}

#[tokio::test]
async fn a_clock_that_jumps_makes_nothing_twice() {
    let project = Project::new();
    let mut watching = open(&project, "2026-12-01T05:59:00Z", &hourly(), End::AtOnce).await;
    assert_eq!(watching.fired().await, at("2026-12-01T06:00:00Z"));
    watching.ended().await;
    // The machine slept: what passed is missed.
    watching.clock.set_wall(at("2026-12-01T09:30:00Z"));
    assert_eq!(watching.fired().await, at("2026-12-01T10:00:00Z"));
    watching.ended().await;
    // Somebody sets it back before an instant that made a run.
    watching.clock.set_wall(at("2026-12-01T09:59:00Z"));
    assert_eq!(watching.fired().await, at("2026-12-01T11:00:00Z"));
    watching.ended().await;
    // Far back: instants that come now have made no run yet.
    watching.clock.set_wall(at("2026-12-01T06:30:00Z"));
    watching.look().await;
    assert_eq!(watching.fired().await, at("2026-12-01T07:00:00Z"));
    watching.ended().await;
    watching.finish().await;
}

#[tokio::test]
async fn a_clock_set_back_while_a_run_works_makes_nothing_missed() {
    let project = Project::new();
    let mut watching = open(&project, "2026-12-01T05:59:00Z", &hourly(), End::LetGo).await;
    watching.fired().await;
    watching.clock.set_wall(at("2026-12-01T05:59:55Z"));
    watching.look().await;
    watching.double.let_go.notify_one();
    watching.ended().await;
    assert_eq!(watching.fired().await, at("2026-12-01T07:00:00Z"));
    assert_eq!(watching.instants().await[1], "2026-12-01T07:00:00Z +0");
    watching.double.let_go.notify_one();
    watching.finish().await;
}

#[tokio::test]
async fn an_instant_while_a_run_works_goes_by_overlap() {
    let project = Project::new();
    let latest = Schedule { overlap: Overlap::Latest, ..hourly() };
    let mut watching = open(&project, "2026-12-01T05:59:00Z", &latest, End::LetGo).await;
    assert_eq!(watching.fired().await, at("2026-12-01T06:00:00Z"));
    watching.clock.set_wall(at("2026-12-01T06:59:50Z"));
    watching.look().await;
    watching.clock.set_wall(at("2026-12-01T07:59:50Z"));
    watching.look().await;
    assert_eq!(watching.instants().await.len(), 1);
    watching.double.let_go.notify_one();
    assert_eq!(watching.fired().await, at("2026-12-01T08:00:00Z"));
    assert_eq!(watching.instants().await[1], "2026-12-01T08:00:00Z +1");
    watching.double.let_go.notify_one();
    watching.finish().await;
}

#[tokio::test]
async fn a_run_that_waited_past_its_deadline_does_not_begin() {
    let project = Project::new().config("[watch]\nconcurrency = 1\n");
    let schedule =
        Schedule { overlap: Overlap::Queue, start_deadline: Some(Duration::from_secs(1800)), ..hourly() };
    let mut watching = open(&project, "2026-12-01T05:59:00Z", &schedule, End::LetGo).await;
    watching.fired().await;
    assert_eq!(watching.fired().await, at("2026-12-01T07:00:00Z"));
    watching.clock.set_wall(at("2026-12-01T07:45:00Z"));
    watching.double.let_go.notify_one();
    watching.ended().await;
    assert_eq!(watching.fired().await, at("2026-12-01T08:00:00Z"));
    let runs = watching.store.runs(&RunFilter::default()).await.unwrap();
    let late = &runs[1];
    assert_eq!((late.state, late.attempts), (RunState::Failed, 0));
    assert_eq!(late.report.as_ref().unwrap().code, "schedule::too_late");
    watching.double.let_go.notify_one();
    watching.finish().await;
}
