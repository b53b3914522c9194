//! Telling others what becomes of runs: nothing is lost, nothing goes where it must not.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod cli;
mod declared;
mod outbox;
mod sent;
mod story;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidemill::event::What;
use tidemill::event::id::{Digest, RunId};
use tidemill::event::state::RunState;
use tidemill::event::trigger::Trigger;
use tidemill::event::usage::Usage;
use tidemill::run::deliveries::Deliveries;
use tidemill::run::intake::notice::{Notice, Tell};
use tidemill::store::{Delivery, NewRun, Store};
use tidemill::workflow::notify::{Address, Moment, Notify};

use crate::support::clock::ManualClock;
use crate::support::project::Project;
use crate::support::receiver::Receiver;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A project whose runs are told of, in a time that only the test moves.
struct Telling {
    _project: Project,
    store: Store,
    clock: Arc<ManualClock>,
    deliveries: Deliveries,
    receiver: Receiver,
    notices: Arc<Mutex<Vec<Notice>>>,
}

impl Telling {
    /// What is sent to the receiver is allowed; its address is also that of the secret URL.
    async fn open() -> Self {
        Self::with("[notify]\nallow = [\"127.0.0.1\"]\n").await
    }

    async fn with(config: &str) -> Self {
        let project = Project::new().config(config);
        let clock = Arc::new(ManualClock::new());
        let opened = project.open();
        let store = Store::open_with(&opened.state(), clock.clone()).await.unwrap();
        let receiver = Receiver::start().await;
        let secret = receiver.url("/services/T0/key-in-the-path?token=abc");
        let env = move |name: &str| match name {
            "URL" => Some(secret.clone()),
            "SECRET" => Some(SECRET.to_owned()),
            _ => None,
        };
        let notices = Arc::new(Mutex::new(Vec::new()));
        let ear = notices.clone();
        let tell = Tell::to(move |notice| ear.lock().unwrap_or_else(PoisonError::into_inner).push(notice));
        let deliveries = Deliveries::new(&opened, store.clone(), clock.clone(), Arc::new(env), tell);
        Self { _project: project, store, clock, deliveries, receiver, notices }
    }

    /// A target at the receiver.
    fn target(&self, events: &[Moment]) -> Notify {
        Notify { url: Address::Url(self.receiver.url("/hook")), secret: None, events: events.to_vec() }
    }

    /// Queues a run whose script has these targets.
    async fn queue(&self, id: &str, targets: &[Notify]) -> RunId {
        let script = Digest::of(format!("{targets:?}"));
        self.store.know_targets(&script, targets).await.unwrap();
        let id = RunId::parse(id).unwrap();
        let at = tidemill::clock::Clock::now(self.clock.as_ref());
        let new = NewRun::new(id.clone(), "refunds", Trigger::Manual, script, "clerk", at);
        self.store.queue_run(new).await.unwrap();
        id
    }

    async fn enter(&self, run: &RunId, state: RunState) {
        self.store.append(run, What::StateEntered { state, reason: None }).await.unwrap();
    }

    async fn end(&self, run: &RunId, state: RunState) {
        let ended = What::RunEnded { state, report: None, usage: Usage::default(), cost: None };
        self.store.append(run, ended).await.unwrap();
    }

    /// Sends what is due until nothing is.
    async fn send(&self) -> usize {
        let mut sent = 0;
        loop {
            match self.deliveries.round().await.unwrap() {
                0 => return sent,
                count => sent += count,
            }
        }
    }

    /// Time passes, and what is due then is sent.
    async fn later(&self, time: Duration) -> usize {
        self.clock.advance(time);
        self.send().await
    }

    /// Every message, oldest first.
    async fn all(&self) -> Vec<Delivery> {
        let mut all = self.store.deliveries(None, 1_000).await.unwrap();
        all.reverse();
        all
    }

    /// The only message.
    async fn only(&self) -> Delivery {
        let [one] = self.all().await.try_into().unwrap_or_else(|all| panic!("{all:?}"));
        one
    }
}
