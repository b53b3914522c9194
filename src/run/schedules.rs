//! Schedules at work: at every instant it is decided whether a run is queued.
//!
//! Nothing here remembers an instant: how far each schedule has come stands in the store, so that a process may be killed
//! anywhere and the next one goes on from there.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::trigger::Trigger;
use crate::run::intake::WorkflowRoute;
use crate::run::intake::notice::{Notice, Tell};
use crate::run::intake::stop::Stop;
use crate::run::pause::Pause;
use crate::run::reload::in_force::InForce;
use crate::store::{Fire, Made, NewRun, Skip, Store};
use crate::trigger::schedule::due::{Busy, Due, Firing, Skipped, due};
use crate::trigger::schedule::plan::Plan;
use crate::workflow::schedule::Schedule;

/// The schedules of a project and what they need.
pub(crate) struct Schedules {
    store: Store,
    clock: Arc<dyn Clock>,
    in_force: InForce,
    plans: Vec<(Plan, WorkflowRoute)>,
    /// Told when runs were queued.
    wake: Arc<Notify>,
    tell: Tell,
}

impl Schedules {
    /// The clock on the wall is looked at this often, whatever was to come next: it may be set, and a machine that
    /// slept does not count the time.
    const LOOK: Duration = Duration::from_secs(30);

    /// For the schedules of the workflows in force. Those that are new count from now.
    pub(crate) async fn open(
        store: Store,
        clock: Arc<dyn Clock>,
        in_force: InForce,
        wake: Arc<Notify>,
        tell: Tell,
    ) -> Result<Self> {
        let workflows = in_force.routes();
        let mut schedules = Self { store, clock, in_force, plans: Vec::new(), wake, tell };
        schedules.follow(&workflows).await?;
        Ok(schedules)
    }

    /// From now on these are the schedules. Those that are new, or have other instants, count from now.
    async fn follow(&mut self, workflows: &[WorkflowRoute]) -> Result<()> {
        let mut plans = Vec::new();
        for route in workflows {
            for plan in self::plans(&route.workflow, &route.schedules)? {
                plans.push((plan, route.clone()));
            }
        }
        let known: Vec<(&str, &str, &Schedule)> =
            plans.iter().map(|(plan, route)| (plan.id(), route.workflow.as_str(), plan.schedule())).collect();
        self.store.know_schedules(&known, self.clock.now()).await?;
        self.plans = plans;
        Ok(())
    }

    /// Works until nothing new may begin.
    pub(crate) async fn work(&mut self, stop: &Stop) -> Result<()> {
        let mut pause = Pause::new("schedules", Arc::clone(&self.clock), self.tell.clone());
        let mut news = self.in_force.subscribe();
        while !stop.is_finishing() {
            if let Some(routes) = news.news()
                && pause.wait(self.follow(&routes).await, stop).await?.is_none()
            {
                news.again();
                continue;
            }
            // What could not be recorded was not decided: the next round decides it.
            let Some(next) = pause.wait(self.round().await, stop).await? else {
                continue;
            };
            pause.over();
            let now = self.clock.now();
            let nap = next.map_or(Self::LOOK, |next| {
                Duration::try_from(next.duration_since(now)).unwrap_or_default().min(Self::LOOK)
            });
            tokio::select! {
                () = stop.finishing() => {}
                () = self.clock.sleep(nap) => {}
                () = news.changed() => {}
            }
        }
        Ok(())
    }

    /// Decides what has come. Gives when something comes next.
    async fn round(&self) -> Result<Option<Timestamp>> {
        let mut next = None;
        for (plan, route) in &self.plans {
            // Asked anew for each: a run takes time to queue.
            let now = self.clock.now();
            let Some(standing) = self.store.standing(plan.id()).await? else {
                continue;
            };
            let busy = if self.store.is_busy(plan.id()).await? { Busy::Yes } else { Busy::No };
            let made = self.store.made(plan.id(), standing.decided.min(now), now).await?;
            let Due { firings, skipped, standing: after, next: comes } =
                due(plan, standing, now, busy, &made);
            // Before how far it has come: what is recorded twice counts once.
            for Skipped { count, first, last, why } in &skipped {
                let skip =
                    Skip { first: *first, last: *last, count: *count, reason: why.as_str().to_owned() };
                self.store.record_skip(plan.id(), &skip).await?;
            }
            for firing in firings {
                self.fire(plan, route, firing, now).await?;
            }
            if after != standing {
                self.store.decide(plan.id(), after).await?;
            }
            for Skipped { count, last, why, .. } in skipped {
                let schedule = plan.id().to_owned();
                self.tell.say(Notice::Skipped { schedule, count, last, reason: why.as_str() });
            }
            next = [next, comes].into_iter().flatten().min();
        }
        Ok(next)
    }

    async fn fire(&self, plan: &Plan, route: &WorkflowRoute, firing: Firing, now: Timestamp) -> Result<()> {
        let declared = plan.schedule();
        let start_by = declared.start_by(firing.at);
        let id = self.store.fresh_id(now).await?;
        let bundle = route.bundle.clone();
        let run = NewRun::new(id.clone(), &route.workflow, Trigger::Schedule, bundle, &route.model, now);
        let fire =
            Fire { schedule: plan.id(), declared, at: firing.at, missed: firing.missed, start_by, run };
        if self.store.fire(&fire).await? == Made::This {
            self.tell.say(Notice::Fired { schedule: plan.id().to_owned(), at: firing.at, run: id });
            self.wake.notify_one();
        }
        Ok(())
    }
}

/// The schedules of a workflow, ready to be asked.
pub fn plans(workflow: &str, schedules: &[Schedule]) -> Result<Vec<Plan>> {
    let numbered = schedules.iter().enumerate();
    numbered
        .map(|(index, schedule)| {
            let id = Schedule::id(workflow, index + 1);
            Plan::new(&id, schedule).map_err(|why| {
                Diagnostic::new("schedule::never", format!("schedule {id} can never fire: {why}"))
                    .help("`tidemill check` shows where it stands")
            })
        })
        .collect()
}
