//! A daemon whose workflows are replaced while it works.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tidemill::clock::Clock as _;
use tidemill::diagnostic::Result;
use tidemill::event::What;
use tidemill::event::input::RawPath;
use tidemill::event::state::{InputState, RunState};
use tidemill::event::usage::Usage;
use tidemill::run::intake::Daemon;
use tidemill::run::intake::notice::{Notice, Tell};
use tidemill::run::intake::stop::Stop;
use tidemill::run::queue::Conduct;
use tidemill::run::watching;
use tidemill::store::{RunRow, Store};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::{project, reload, script, soon};
use crate::support::clock::ManualClock;
use crate::support::project::Project;

/// Ends runs when the test lets them go.
struct Double {
    store: Store,
    let_go: Notify,
    begun: mpsc::UnboundedSender<RunRow>,
}

#[async_trait]
impl Conduct for Double {
    async fn conduct(&self, run: &RunRow, _stop: CancellationToken) -> Result<RunState> {
        let _ = self.begun.send(run.clone());
        self.let_go.notified().await;
        let ended =
            What::RunEnded { state: RunState::Succeeded, report: None, usage: Usage::default(), cost: None };
        self.store.append(&run.id, ended).await?;
        Ok(RunState::Succeeded)
    }
}

struct Watching {
    store: Store,
    clock: Arc<ManualClock>,
    double: Arc<Double>,
    begun: mpsc::UnboundedReceiver<RunRow>,
    notices: mpsc::UnboundedReceiver<Notice>,
    stop: Stop,
    daemon: tokio::task::JoinHandle<Result<()>>,
    reload: tokio::task::JoinHandle<()>,
}

async fn watch(project: &Project) -> Watching {
    let clock = Arc::new(ManualClock::new());
    let opened = project.open();
    let store = Store::open_with(&opened.state(), clock.clone()).await.unwrap();
    let (tells, begun) = mpsc::unbounded_channel();
    let double = Arc::new(Double { store: store.clone(), let_go: Notify::new(), begun: tells });
    let (say, notices) = mpsc::unbounded_channel();
    let tell = Tell::to(move |notice| drop(say.send(notice)));
    let routes = watching::routes(&opened, &store, None).await.unwrap();
    let lock = Daemon::lock(&opened).unwrap();
    let daemon =
        Daemon::open(lock, &opened, store.clone(), clock.clone(), routes, double.clone(), tell.clone());
    let daemon = daemon.await.unwrap();
    let (reload, _) = reload(project, &store, &clock, daemon.in_force(), tell);
    let reload = tokio::spawn(async move { reload.work().await });
    let stop = Stop::new();
    let daemon = tokio::spawn(daemon.run(stop.clone()));
    Watching { store, clock, double, begun, notices, stop, daemon, reload }
}

impl Watching {
    async fn pass<T>(clock: &ManualClock, next: impl Future<Output = T>) -> T {
        let passing = async {
            loop {
                tokio::task::yield_now().await;
                clock.advance(Duration::from_millis(50));
            }
        };
        tokio::select! {
            biased;
            done = soon(next) => done,
            () = passing => unreachable!("time passes for ever"),
        }
    }

    async fn notice(&mut self, wanted: impl Fn(&Notice) -> bool) -> Notice {
        loop {
            let notice = Self::pass(&self.clock, self.notices.recv()).await.unwrap();
            if wanted(&notice) {
                return notice;
            }
        }
    }

    async fn begun(&mut self) -> RunRow {
        Self::pass(&self.clock, self.begun.recv()).await.unwrap()
    }

    async fn reloaded(&mut self) {
        self.notice(|notice| matches!(notice, Notice::Reloaded { .. })).await;
    }

    async fn finish(self) {
        self.reload.abort();
        self.stop.finish();
        self.double.let_go.notify_one();
        Self::pass(&self.clock, self.daemon).await.unwrap().unwrap();
    }
}

const CSV: &str = "triggers = { mill.drop { glob = \"**/*.csv\" } },";

#[tokio::test]
async fn waiting_files_go_by_the_workflows_as_they_are_now() {
    let project = project().file("inbox/a.csv", "abc");
    let mut watching = watch(&project).await;
    let left = |path: &'static str| move |notice: &Notice| matches!(notice, Notice::Left { path: left, state: InputState::Ignored, .. } if *left == RawPath::new(path));
    watching.notice(left("a.csv")).await;
    // One comes that the file is for.
    project.put("workflows/a.lua", script("a", CSV));
    let first = watching.begun().await;
    assert_eq!((first.workflow.as_str(), first.inputs[0].path.display().as_str()), ("a", "a.csv"));
    // It is edited while its run works: the run keeps what it began with, the next one does not.
    project.put("workflows/a.lua", script("a", &format!("{CSV} description = \"New.\",")));
    watching.reloaded().await;
    watching.double.let_go.notify_one();
    project.put("inbox/b.csv", "abc");
    let second = watching.begun().await;
    assert_ne!(second.script, first.script);
    assert_eq!(watching.store.run(&first.id).await.unwrap().unwrap().script, first.script);
    // It goes while its run is in work: the run goes on, and other files are for nobody.
    std::fs::remove_file(project.path("workflows/a.lua")).unwrap();
    watching.reloaded().await;
    project.put("inbox/c.csv", "abc");
    watching.notice(left("c.csv")).await;
    watching.double.let_go.notify_one();
    watching.notice(|notice| matches!(notice, Notice::PutAway { state: InputState::Done, path, .. } if *path == RawPath::new("b.csv"))).await;
    watching.finish().await;
}

#[tokio::test]
async fn a_schedule_that_stays_the_same_keeps_its_standing() {
    let every = |hours: u32| format!("triggers = {{ mill.schedule {{ every = \"{hours}h\" }} }},");
    let project = project().workflow("a.lua", &script("a", &every(1)));
    let mut watching = watch(&project).await;
    let at = watching.clock.now();
    let before = watching.store.standing("a/1").await.unwrap().unwrap();
    assert_eq!(before.decided, at);
    project.put("workflows/a.lua", script("a", &format!("{} description = \"New.\",", every(1))));
    watching.reloaded().await;
    let first = watching.begun().await;
    watching.double.let_go.notify_one();
    let versions = watching.store.versions().await.unwrap();
    assert_eq!(first.script, versions[0].bundle, "it is made of the new version");
    // With other instants it counts from now, and there is one more of them.
    let both = "triggers = { mill.schedule { every = \"5h\" }, mill.schedule { every = \"7h\" } },";
    project.put("workflows/a.lua", script("a", both));
    watching.reloaded().await;
    while watching.store.standing("a/2").await.unwrap().is_none() {
        tokio::task::yield_now().await;
    }
    let changed = watching.store.standing("a/1").await.unwrap().unwrap();
    assert!(changed.decided > at + jiff::SignedDuration::from_hours(1));
    // And without any, none is known.
    std::fs::remove_file(project.path("workflows/a.lua")).unwrap();
    watching.reloaded().await;
    while watching.store.standing("a/1").await.unwrap().is_some() {
        tokio::task::yield_now().await;
    }
    watching.finish().await;
}
