//! Telling others what becomes of runs: every message is tried until it arrives or its time is over.
//!
//! What is to be sent stands in the store beside the event it tells of, so that a process may be killed anywhere: a
//! message may then arrive twice, with the same id, and is never lost.

mod message;
mod reach;
mod retry;
mod send;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use crate::clock::Clock;
use crate::config::{NotifySettings, Project};
use crate::diagnostic::{Diagnostic, Result};
use crate::event::What;
use crate::run::intake::notice::{Notice, Tell};
use crate::run::intake::stop::Stop;
use crate::run::pause::Pause;
use crate::store::{Attempted, Delivery, DeliveryState, Store};
use crate::trigger::webhook::Key;
use crate::workflow::notify::{Moment, Notify};

/// Knows the values of environment variables.
pub type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Sends what waits to be sent.
pub struct Deliveries {
    store: Store,
    clock: Arc<dyn Clock>,
    settings: NotifySettings,
    env: Environment,
    tell: Tell,
}

impl Deliveries {
    /// Messages sent at once.
    const AT_ONCE: usize = 16;

    /// Other processes leave messages as well, and cannot wake this one.
    const LOOK: Duration = Duration::from_secs(2);

    /// For a project's messages; `env` knows the secrets.
    pub fn new(project: &Project, store: Store, clock: Arc<dyn Clock>, env: Environment, tell: Tell) -> Self {
        Self { store, clock, settings: project.config.notify.clone(), env, tell }
    }

    /// Works until nothing new may begin. What is left is sent by the next daemon.
    pub async fn work(&self, stop: &Stop) -> Result<()> {
        let mut pause = Pause::new("sending messages", Arc::clone(&self.clock), self.tell.clone());
        let mut told = self.store.follow();
        while !stop.is_finishing() {
            let round = tokio::select! {
                round = self.round() => round,
                () = stop.interrupting() => return Ok(()),
            };
            let Some(sent) = pause.wait(round, stop).await? else {
                continue;
            };
            pause.over();
            if sent > 0 {
                // The next message of a run comes right behind.
                continue;
            }
            let moment = async {
                loop {
                    match told.recv().await {
                        Ok(event) if Moment::of(&event.what).is_none() => {}
                        // Whoever lags looks.
                        _ => break,
                    }
                }
            };
            tokio::select! {
                () = moment => {}
                () = self.clock.sleep(Self::LOOK) => {}
                () = stop.finishing() => {}
            }
        }
        Ok(())
    }

    /// Sends what is due, all at once, and records what came of it. Gives how many messages that were.
    pub async fn round(&self) -> Result<usize> {
        let limit = u32::try_from(Self::AT_ONCE).unwrap_or(u32::MAX);
        let due = self.store.next_deliveries(limit).await?;
        let done = join_all(due.iter().map(|delivery| self.deliver(delivery))).await;
        done.into_iter().collect::<Result<Vec<()>>>().map(|done| done.len())
    }

    async fn deliver(&self, delivery: &Delivery) -> Result<()> {
        // It may have been forgotten since, with all messages about it.
        let Some(body) = self.body(delivery).await? else { return Ok(()) };
        let sender =
            send::Sender { settings: &self.settings, env: self.env.as_ref(), clock: self.clock.as_ref() };
        let sent = sender.send(&delivery.target, &delivery.message_id(), body).await;
        let came = retry::decide(delivery.attempts, sent, self.clock.now());
        self.store.attempted(delivery, &came).await?;
        self.say(delivery, came);
        Ok(())
    }

    async fn body(&self, delivery: &Delivery) -> Result<Option<String>> {
        let Some(row) = self.store.run(&delivery.run).await? else { return Ok(None) };
        let events = match delivery.moment {
            Moment::Queued | Moment::Started => Vec::new(),
            _ => self.store.all_events(&delivery.run).await?,
        };
        let events: Vec<What> = events.into_iter().map(|event| event.what).collect();
        Ok(Some(message::compose(delivery, &row, &events)))
    }

    /// Says the first failure and the last; what lies between is in the list.
    fn say(&self, delivery: &Delivery, came: Attempted) {
        let is_news = delivery.attempts == 0 || came.state != DeliveryState::Waiting;
        if came.state == DeliveryState::Delivered || !is_news {
            return;
        }
        self.tell.say(Notice::Undelivered {
            delivery: delivery.id,
            moment: delivery.moment.as_str(),
            run: delivery.run.clone(),
            to: delivery.target.url.shown(),
            state: came.state.as_str(),
            why: came.error.unwrap_or_default(),
        });
    }
}

impl fmt::Debug for Deliveries {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Deliveries").field("store", &self.store).finish_non_exhaustive()
    }
}

/// Whether all that is needed to tell these targets is there: what a message would miss is missed at the start.
///
/// Errors: `deliveries::no_secret`, `deliveries::bad_secret`.
pub fn check(workflow: &str, targets: &[Notify], env: &dyn Fn(&str) -> Option<String>) -> Result<()> {
    for target in targets {
        for name in target.secrets() {
            let Some(value) = env(&name) else {
                let message = format!(
                    "`mill.notify` of {workflow} uses the secret `{name}`, and no such variable is set"
                );
                return Err(Diagnostic::new("deliveries::no_secret", message)
                    .help(format!("set {name} in the environment of tidemill")));
            };
            if target.secret.as_ref() == Some(&name)
                && let Err(why) = Key::standard(&value)
            {
                let message =
                    format!("the secret `{name}` of `mill.notify` of {workflow} cannot be used: {why}");
                return Err(Diagnostic::new("deliveries::bad_secret", message).help(
                    "`printf 'whsec_%s\\n' \"$(head -c 32 /dev/urandom | base64)\"` makes one; the receiver needs the same",
                ));
            }
        }
    }
    Ok(())
}
