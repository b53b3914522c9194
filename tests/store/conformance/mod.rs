//! What every store must do, whatever it keeps its rows in: each check takes an empty store and uses nothing but what a
//! store offers. A second kind of store is held to the same checks by one more caller.

mod fence;
mod ledger;
mod log;
mod queue;
mod schedules;

use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tidemill::event::What;
use tidemill::event::id::{Digest, RunId};
use tidemill::event::state::RunState;
use tidemill::event::trigger::Trigger;
use tidemill::event::usage::Usage;
use tidemill::owner::Owner;
use tidemill::store::{NewRun, RunRow, Store};

use crate::support::clock::ManualClock;

/// An empty store, and the time it goes by.
struct Fresh {
    store: Store,
    clock: Arc<ManualClock>,
}

/// The checks, each on a store of its own.
macro_rules! held_to {
    ($($scene:ident: $($check:ident),+ $(,)?;)+) => {
        $($(
            #[tokio::test]
            async fn $check() {
                let folder = TempDir::with_prefix("tidemill-conformance-").unwrap();
                let clock = Arc::new(ManualClock::new());
                let store = Store::open_with(folder.path(), clock.clone()).await.unwrap();
                $scene::$check(&Fresh { store, clock }).await;
            }
        )+)+
    };
}

held_to! {
    fence: a_run_is_taken_once, who_lost_a_run_writes_nothing, who_lets_go_has_nothing_more_to_say,
        attempts_count_what_did_not_end_in_good_order, a_run_by_hand_is_its_own_from_the_start;
    ledger: a_file_is_claimed_with_its_runs_or_not_at_all;
    log: events_of_many_runs_at_once_keep_their_order, nothing_follows_the_last_event,
        a_refusal_concerns_nobody_else;
    queue: the_oldest_of_each_workflow_are_seen_however_many_wait,
        a_postponed_run_waits_for_its_time, a_cancelled_run_does_not_wait;
    schedules: an_instant_makes_one_run_whatever_is_asked;
}

impl Fresh {
    /// Queues a run that waits for a worker.
    async fn queue(&self, id: &str, workflow: &str) -> RunId {
        let run = RunId::parse(id).unwrap();
        let at = "2026-11-30T23:00:00Z".parse().unwrap();
        let script = Digest::of("script");
        self.store
            .queue_run(NewRun::new(run.clone(), workflow, Trigger::Webhook, script, "analyst", at))
            .await
            .unwrap();
        run
    }

    async fn take(&self, run: &RunId) -> Option<RunRow> {
        self.store.take(run, &this()).await.unwrap()
    }

    async fn row(&self, run: &RunId) -> RunRow {
        self.store.run(run).await.unwrap().unwrap()
    }

    /// Ids of what waits, `each` of a workflow.
    async fn waiting(&self, each: u32) -> Vec<String> {
        self.store.waiting(each).await.unwrap().into_iter().map(|run| run.id.to_string()).collect()
    }

    fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }
}

fn this() -> Owner {
    Owner::this_process().unwrap()
}

fn entered(state: RunState) -> What {
    What::StateEntered { state, reason: None }
}

fn ended(state: RunState) -> What {
    What::RunEnded { state, report: None, usage: Usage::default(), cost: None }
}
