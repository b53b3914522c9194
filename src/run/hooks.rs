//! Webhooks at work: a request that is who it says becomes one run, and is told so when the run is on the disk.

mod complaints;
mod end;
mod files;
mod table;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::Notify;

use crate::clock::Clock;
use crate::config::Project;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::RunId;
use crate::event::trigger::Trigger;
use crate::run::folder::RunFolder;
use crate::run::hooks::complaints::Complaints;
pub use crate::run::hooks::end::End;
pub use crate::run::hooks::table::{Hook, Table, missing};
use crate::run::intake::notice::{Notice, Tell};
use crate::run::intake::stop::Stop;
use crate::run::pause::passes;
use crate::run::room::Room;
use crate::store::{Heard, NewRun, RequestKey, Store};
use crate::trigger::webhook::{Brings, Brought, Identity, Request, challenge, identity, verify};
use crate::workflow::webhook::Webhook;

/// What becomes of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Its run is queued, now or before.
    Queued(RunId),
    /// Its run has ended.
    Ended(Box<End>),
    /// The sender asks whether somebody listens.
    Pong,
    /// The sender wants this text back.
    Challenge(String),
    /// It is not taken, and why is not told.
    Refused,
    /// Too many came; the next may come after this time.
    TooMany(Duration),
    /// Its sender is known, and it cannot be read.
    Malformed(String),
    /// Nothing can be taken now; it may be after this time.
    Busy(Duration),
    /// Something is wrong here.
    Broken,
}

/// The webhooks of a project.
pub struct Hooks {
    project: Project,
    store: Store,
    clock: Arc<dyn Clock>,
    table: RwLock<Arc<Table>>,
    room: Room,
    /// Told when runs were queued.
    wake: Arc<Notify>,
    tell: Tell,
    complaints: Complaints,
    stop: Stop,
}

impl Hooks {
    /// Senders try again after this time when nothing can be taken.
    const AGAIN: Duration = Duration::from_secs(10);

    /// Nobody is kept waiting for a run's end for longer.
    const LONGEST_WAIT: Duration = Duration::from_secs(60);

    /// What a path without a webhook is called: its text is anybody's.
    const UNKNOWN: &str = "a path without a webhook";

    /// Without any webhook yet, see [`Hooks::set`].
    pub(crate) fn new(
        project: &Project,
        store: Store,
        clock: Arc<dyn Clock>,
        wake: Arc<Notify>,
        tell: Tell,
    ) -> Self {
        Self {
            project: project.clone(),
            room: Room::of(project),
            store,
            clock,
            table: RwLock::default(),
            wake,
            complaints: Complaints::new(tell.clone()),
            tell,
            stop: Stop::new(),
        }
    }

    /// Makes these the webhooks there are, at once: requests that are being read go by the old ones.
    pub fn set(&self, table: Table) {
        *self.table.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(table);
    }

    /// Bytes of a body that are read for `path`; as many as usual where there is no webhook.
    pub fn max_body(&self, path: &str) -> u64 {
        self.hook(path).map_or(Webhook::MAX_BODY, |hook| hook.webhook.max_body)
    }

    /// Takes nothing any more, and lets nobody wait.
    pub fn close(&self) {
        self.stop.finish();
    }

    /// Takes a request. What was accepted stands on the disk when this returns.
    pub async fn receive(self: &Arc<Self>, request: Request) -> Answer {
        let Some(hook) = self.hook(&request.path) else {
            self.complaints.refused(Self::UNKNOWN, "nobody listens there", self.clock.elapsed());
            return Answer::Refused;
        };
        let scheme = &hook.webhook.scheme;
        if let Err(refusal) = verify(scheme, &hook.keys, &request, self.clock.now()) {
            self.complaints.refused(&hook.webhook.path, refusal.as_str(), self.clock.elapsed());
            return Answer::Refused;
        }
        if let Some(text) = challenge(scheme, &request) {
            return Answer::Challenge(text);
        }
        let wait = request.wait().map(|seconds| Duration::from_secs(seconds).min(Self::LONGEST_WAIT));
        let identity = identity(scheme, &request);
        // A repeat costs nothing and is never told to wait.
        match self.store.heard(&key(&hook, &identity), self.clock.now()).await {
            Ok(Some(run)) => {
                // Whoever waits holds no body meanwhile.
                drop(request);
                return self.answer(run, wait).await;
            }
            Ok(None) => {}
            Err(error) => return self.cannot(&hook, &error),
        }
        if let Err(wait) = hook.take(self.clock.elapsed()) {
            self.complaints.refused(&hook.webhook.path, "more came than its `rate`", self.clock.elapsed());
            return Answer::TooMany(wait);
        }
        let brings = match request.open(scheme).await {
            Ok(Brought::Run(brings)) => brings,
            Ok(Brought::Ping) => return Answer::Pong,
            Err(malformed) => return Answer::Malformed(malformed.0),
        };
        // A sender that hangs up must not leave half of this.
        let (own, asked) = (Arc::clone(self), Arc::clone(&hook));
        let queued = tokio::spawn(async move { own.queue(&asked, &identity, brings).await }).await;
        match queued {
            Ok(Ok(run)) => self.answer(run, wait).await,
            Ok(Err(error)) => self.cannot(&hook, &error),
            Err(broken) => {
                let error =
                    Diagnostic::new("hooks::broken", "a request broke off inside tidemill").cause(broken);
                self.cannot(&hook, &error)
            }
        }
    }

    fn hook(&self, path: &str) -> Option<Arc<Hook>> {
        self.table.read().unwrap_or_else(PoisonError::into_inner).get(path)
    }

    /// Keeps what a request brings, and then its run.
    async fn queue(&self, hook: &Hook, identity: &Identity, brings: Brings) -> Result<RunId> {
        if self.stop.is_finishing() {
            return Err(Diagnostic::new("store::busy", "tidemill stops"));
        }
        self.room.check()?;
        let now = self.clock.now();
        let (id, folder) = loop {
            let id = self.store.fresh_id(now).await?;
            let folder = RunFolder::new(&self.project.state(), &id);
            if folder.reserve()? {
                break (id, folder);
            }
        };
        let kept = files::keep(brings.files, &folder).await;
        let heard = match kept {
            Ok(inputs) => {
                let route = &hook.route;
                let new = NewRun::new(
                    id.clone(),
                    &route.workflow,
                    Trigger::Webhook,
                    route.bundle.clone(),
                    &route.model,
                    now,
                );
                self.store.hear(&key(hook, identity), &NewRun { inputs, params: brings.params, ..new }).await
            }
            Err(error) => Err(error),
        };
        match heard {
            Ok(Heard::Now) => {
                self.tell.say(Notice::Received { hook: hook.webhook.path.clone(), run: id.clone() });
                self.wake.notify_one();
                Ok(id)
            }
            Ok(Heard::Before(run)) => {
                folder.tidy();
                Ok(run)
            }
            Err(error) => {
                folder.tidy();
                Err(error)
            }
        }
    }

    /// What the sender of a request that made `run` is told.
    async fn answer(&self, run: RunId, wait: Option<Duration>) -> Answer {
        let Some(wait) = wait else {
            return Answer::Queued(run);
        };
        match End::within(&self.store, self.clock.as_ref(), &self.stop, &run, wait).await {
            Ok(Some(end)) => Answer::Ended(Box::new(end)),
            // It is queued, whatever cannot be read now.
            Ok(None) | Err(_) => Answer::Queued(run),
        }
    }

    /// Nothing was accepted: the sender is to try again.
    fn cannot(&self, hook: &Hook, error: &Diagnostic) -> Answer {
        let why = format!("{}: {}", error.code(), error.message());
        self.complaints.refused(&hook.webhook.path, &why, self.clock.elapsed());
        if passes(error) { Answer::Busy(Self::AGAIN) } else { Answer::Broken }
    }
}

impl std::fmt::Debug for Hooks {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Hooks").field("project", &self.project.root).finish_non_exhaustive()
    }
}

fn key<'a>(hook: &'a Hook, identity: &'a Identity) -> RequestKey<'a> {
    RequestKey { hook: &hook.webhook.path, digest: &identity.digest, window: identity.window }
}
