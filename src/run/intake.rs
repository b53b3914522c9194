//! The watch daemon: from a file in the inbox to its runs, and from their ends to a file put away.
//!
//! A `desk` claims what is complete, schedules fire and webhooks are heard beside it, the queue has runs carried out, and
//! `finish` puts files away. Each step is recorded before it is taken, so that `recover` can go on from wherever a process
//! was killed.

mod brim;
mod carry;
pub mod desk;
pub(crate) mod finish;
mod ids;
mod lock;
mod names;
pub mod notice;
mod place;
mod plan;
mod reason;
mod recover;
mod sidecar;
pub mod stop;
mod way_back;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use crate::clock::Clock;
use crate::config::Project;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::Digest;
use crate::run::hooks::Hooks;
use crate::run::intake::desk::{Desk, blocking};
use crate::run::intake::finish::Putter;
pub use crate::run::intake::lock::{Holder, Lock};
use crate::run::intake::notice::{Notice, Tell};
use crate::run::intake::stop::Stop;
use crate::run::pause::Pause;
use crate::run::queue::{Conduct, Queue};
use crate::run::reload::in_force::{InForce, News};
use crate::run::room::Room;
use crate::run::schedules::Schedules;
use crate::run::socket::Socket;
use crate::store::Store;
use crate::trigger::drop_folder::pace::Pace;
use crate::trigger::drop_folder::watch::Watch;
use crate::workflow::queueing::Queueing;
use crate::workflow::sandbox::Kind;
use crate::workflow::schedule::Schedule;
use crate::workflow::trigger::Drop;
use crate::workflow::webhook::Webhook;

/// A workflow as the intake needs it.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkflowRoute {
    /// Its name.
    pub workflow: String,
    /// Which files of the inbox it is for.
    pub drops: Vec<Drop>,
    /// At which instants it runs.
    pub schedules: Vec<Schedule>,
    /// Requests that start it.
    pub webhooks: Vec<Webhook>,
    /// Name of the model its runs use.
    pub model: String,
    /// The bundle of scripts its runs are pinned to: a blob of the store.
    pub bundle: Digest,
    /// Where its commands run.
    pub sandbox: Kind,
    /// How its runs stand in the queue.
    pub queueing: Queueing,
}

impl WorkflowRoute {
    /// Whether only `tidemill run` starts it.
    pub fn has_no_trigger(&self) -> bool {
        self.drops.is_empty() && self.schedules.is_empty() && self.webhooks.is_empty()
    }
}

/// Watches one project until it is told to stop. There is one at a time.
pub struct Daemon {
    desk: Desk,
    watch: Watch,
    queue: Queue,
    schedules: Schedules,
    in_force: InForce,
    hooks: Arc<Hooks>,
    inbox: PathBuf,
    rescan: Duration,
    /// Before the lock: a socket goes away while nobody else may have made one.
    socket: Socket,
    lock: Lock,
}

impl Daemon {
    /// After a hint it waits this long for more of them: a copied folder is one change, not a hundred.
    const GATHER: Duration = Duration::from_millis(10);

    /// A scan is never more than this part of the time, however many hints come.
    const BREATHS: u32 = 4;

    /// Takes the project's lock, before anything of it is touched.
    ///
    /// Errors: `watch::running` when it is watched already.
    pub fn lock(project: &Project) -> Result<Lock> {
        Lock::take(&project.state())
    }

    /// Puts right what a dead process left behind, and gets ready to watch.
    ///
    /// Errors: `config::invalid` when files would be put away into the inbox, and what the store says.
    pub async fn open(
        lock: Lock,
        project: &Project,
        store: Store,
        clock: Arc<dyn Clock>,
        workflows: Vec<WorkflowRoute>,
        conduct: Arc<dyn Conduct>,
        tell: Tell,
    ) -> Result<Self> {
        refuse_loops(project)?;
        let room = Room::of(project);
        let putter = Putter::new(project.clone(), store.clone(), tell.clone());
        recover::recover(project, &store, &putter, &tell).await?;
        let wake = Arc::new(Notify::new());
        let in_force = InForce::new(workflows.clone());
        let (instants, woken) = (Arc::clone(&clock), Arc::clone(&wake));
        let schedules =
            Schedules::open(store.clone(), instants, in_force.clone(), woken, tell.clone()).await?;
        let hooks = Hooks::new(project, store.clone(), Arc::clone(&clock), Arc::clone(&wake), tell.clone());
        let desk = Desk::open(project, store.clone(), Arc::clone(&clock), workflows, tell.clone()).await?;
        let putter = desk.putter();
        Ok(Self {
            desk,
            schedules,
            in_force: in_force.clone(),
            hooks: Arc::new(hooks),
            watch: Watch::new(&project.inbox()),
            inbox: project.inbox(),
            rescan: project.config.watch.rescan,
            queue: Queue {
                project: project.clone(),
                store,
                clock,
                conduct,
                holder: lock.this().owner.clone(),
                in_force,
                putter,
                tell,
                room,
                wake,
            },
            socket: Socket::open(&project.state()),
            lock,
        })
    }

    /// Works until `stop`; then no file is taken any more, and it returns when no run is in work.
    ///
    /// An error breaks runs off cleanly before it is returned; they go on next time.
    pub async fn run(self, stop: Stop) -> Result<()> {
        // Much is in its hands, and whoever waits for it is not to carry that.
        Box::pin(self.work(stop)).await
    }

    async fn work(self, stop: Stop) -> Result<()> {
        let Self { mut desk, watch, queue, mut schedules, in_force, hooks, rescan, lock, socket, .. } = self;
        let intake = async {
            let news = in_force.subscribe();
            let done = Self::take_in(&mut desk, watch, &queue, Pace::new(rescan), news, &stop).await;
            if done.is_err() {
                stop.interrupt();
            }
            done
        };
        let work = async {
            let done = queue.work(&stop).await;
            if done.is_err() {
                stop.interrupt();
            }
            done
        };
        let fire = async {
            let done = schedules.work(&stop).await;
            if done.is_err() {
                stop.interrupt();
            }
            done
        };
        let close = async {
            stop.finishing().await;
            hooks.close();
        };
        let all = async {
            let (intake, fire, work, ()) =
                tokio::join!(Box::pin(intake), Box::pin(fire), Box::pin(work), close);
            intake.and(fire).and(work)
        };
        tokio::select! {
            done = all => done,
            // It has no end.
            () = socket.serve(&queue.store, lock.this(), &queue.wake) => Ok(()),
        }
    }

    /// The workflows that new runs are made of, which may be replaced while it works.
    pub fn in_force(&self) -> InForce {
        self.in_force.clone()
    }

    /// Its webhooks: none until they are set, and whoever serves requests hands them in.
    pub fn hooks(&self) -> Arc<Hooks> {
        Arc::clone(&self.hooks)
    }

    /// Whether a daemon watches this project now.
    pub fn watches(project: &Project) -> bool {
        Lock::is_held(&project.state())
    }

    async fn take_in(
        desk: &mut Desk,
        mut watch: Watch,
        queue: &Queue,
        mut pace: Pace,
        mut news: News,
        stop: &Stop,
    ) -> Result<()> {
        let clock = &queue.clock;
        let mut pause = Pause::new("taking files in", Arc::clone(clock), queue.tell.clone());
        let hints = watch.hints();
        while !stop.is_finishing() {
            if pause.wait(queue.room.check(), stop).await?.is_none()
                || pause.wait(desk.catch_up().await, stop).await?.is_none()
            {
                continue;
            }
            if let Some(routes) = news.news() {
                desk.set_workflows(routes.to_vec())?;
                pace.anew();
            }
            let began = clock.elapsed();
            let mut asked = pace.asked(began, watch.polled());
            asked.merge(desk.due_folders());
            let scan;
            (watch, scan) = blocking(move || {
                let scan = watch.look(asked);
                (watch, scan)
            })
            .await?;
            for warning in watch.warnings() {
                queue.tell.say(Notice::Warned(warning.report()));
            }
            if let Some(scan) = scan {
                let Some(queued) = pause.wait(desk.tick(&scan).await, stop).await? else {
                    continue;
                };
                if queued > 0 {
                    queue.wake.notify_one();
                }
                pace.looked(&scan, began, clock.elapsed());
            }
            pause.over();
            let now = clock.elapsed();
            let breath = Self::GATHER.max(now.saturating_sub(began) * Self::BREATHS);
            let nap = pace.nap(began, now, desk.due()).max(breath);
            tokio::select! {
                () = stop.finishing() => {}
                () = clock.sleep(nap) => {}
                () = news.changed() => {}
                () = hints.hint() => tokio::select! {
                    () = stop.finishing() => {}
                    () = clock.sleep(breath) => {}
                },
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for Daemon {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Daemon").field("inbox", &self.inbox).finish_non_exhaustive()
    }
}

/// What we write must not be taken for what was dropped.
pub(crate) fn refuse_loops(project: &Project) -> Result<()> {
    let folders = &project.config.folders;
    let inbox = real(&project.inbox());
    for (name, folder) in
        [("outbox", &folders.outbox), ("processed", &folders.processed), ("failed", &folders.failed)]
    {
        if real(&project.root.join(folder)).starts_with(&inbox) {
            let message =
                format!("folder `{name}` lies in the inbox, so its files would be taken as dropped");
            return Err(Diagnostic::new("config::invalid", message)
                .help(format!("choose another place for `folders.{name}` in tidemill.toml")));
        }
    }
    Ok(())
}

/// A path without links, also of a folder that is not made yet.
fn real(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    there.and_then(|(above, real)| Some(real.join(path.strip_prefix(above).ok()?))).unwrap_or(path.to_owned())
}
