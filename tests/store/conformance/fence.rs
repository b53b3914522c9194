//! Who has a run, and that nobody else writes to it.

use tidemill::event::id::{Digest, RunId};
use tidemill::event::state::RunState;
use tidemill::event::trigger::Trigger;
use tidemill::store::{Lease, NewRun};

use super::{Fresh, ended, entered, this};

pub(super) async fn a_run_is_taken_once(fresh: &Fresh) {
    let run = fresh.queue("run-1", "energy").await;
    let taken = fresh.take(&run).await.unwrap();
    assert_eq!((taken.fence, taken.attempts, taken.state), (1, 1, RunState::Queued));
    assert_eq!(taken.holder, Some(this().to_string()));
    assert!(fresh.take(&run).await.is_none());
    assert!(fresh.waiting(10).await.is_empty());
    let in_work = fresh.store.in_work().await.unwrap();
    assert_eq!(in_work.iter().map(|row| &row.id).collect::<Vec<_>>(), [&run]);
}

pub(super) async fn who_lost_a_run_writes_nothing(fresh: &Fresh) {
    let run = fresh.queue("run-1", "energy").await;
    let old = fresh.take(&run).await.unwrap().lease();
    fresh.store.append_under(&old, entered(RunState::Preparing)).await.unwrap();
    fresh.store.release_all().await.unwrap();
    let before = fresh.store.all_events(&run).await.unwrap().len();
    // Whether or not somebody has it again.
    for _ in 0..2 {
        for what in [entered(RunState::Publishing), ended(RunState::Succeeded)] {
            let lost = fresh.store.append_under(&old, what.clone()).await.unwrap_err();
            assert_eq!(lost.code(), Lease::LOST);
            assert_eq!(fresh.store.give_back(&old, what).await.unwrap_err().code(), Lease::LOST);
        }
        fresh.store.append(&run, entered(RunState::Queued)).await.unwrap();
        fresh.take(&run).await.unwrap();
    }
    let row = fresh.row(&run).await;
    assert_eq!((row.state, row.attempts), (RunState::Queued, 3), "what was refused counts nothing");
    assert_eq!(fresh.store.all_events(&run).await.unwrap().len(), before + 2);
    fresh.store.append_under(&row.lease(), ended(RunState::Succeeded)).await.unwrap();
}

pub(super) async fn who_lets_go_has_nothing_more_to_say(fresh: &Fresh) {
    let run = fresh.queue("run-1", "energy").await;
    let first = fresh.take(&run).await.unwrap();
    fresh.store.give_back(&first.lease(), entered(RunState::Queued)).await.unwrap();
    assert_eq!(fresh.row(&run).await.holder, None);
    let second = fresh.take(&run).await.unwrap();
    assert_eq!(second.fence, 2);
    let lost = fresh.store.append_under(&first.lease(), entered(RunState::Running)).await.unwrap_err();
    assert_eq!(lost.code(), Lease::LOST);
    fresh.store.append_under(&second.lease(), ended(RunState::Failed)).await.unwrap();
    assert_eq!(fresh.row(&run).await.holder, None);
    assert!(fresh.take(&run).await.is_none());
}

pub(super) async fn attempts_count_what_did_not_end_in_good_order(fresh: &Fresh) {
    let run = fresh.queue("run-1", "energy").await;
    let row = fresh.take(&run).await.unwrap();
    fresh.store.give_back(&row.lease(), entered(RunState::Queued)).await.unwrap();
    assert_eq!(fresh.row(&run).await.attempts, 0);
    // And now its process dies.
    fresh.take(&run).await.unwrap();
    fresh.store.release_all().await.unwrap();
    assert_eq!(fresh.row(&run).await.attempts, 1);
    assert_eq!(fresh.take(&run).await.unwrap().attempts, 2);
}

pub(super) async fn a_run_by_hand_is_its_own_from_the_start(fresh: &Fresh) {
    let id = RunId::parse("run-hand").unwrap();
    let at = "2026-11-30T23:00:00Z".parse().unwrap();
    let new = NewRun {
        holder: Some(this()),
        ..NewRun::new(id.clone(), "energy", Trigger::Manual, Digest::of("script"), "analyst", at)
    };
    fresh.store.queue_run(new).await.unwrap();
    assert!(fresh.waiting(10).await.is_empty() && fresh.take(&id).await.is_none());
    assert!(fresh.store.unended().await.unwrap().is_empty());
    let row = fresh.row(&id).await;
    assert_eq!((row.by_hand, row.fence), (true, 1));
    // A daemon that starts leaves it alone.
    fresh.store.release_all().await.unwrap();
    fresh.store.append_under(&row.lease(), ended(RunState::Succeeded)).await.unwrap();
}
