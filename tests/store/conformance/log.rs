//! The log: in order, to its end, and each writer told of its own.

use tidemill::event::id::RunId;
use tidemill::event::state::RunState;

use super::{Fresh, ended, entered};

pub(super) async fn events_of_many_runs_at_once_keep_their_order(fresh: &Fresh) {
    const RUNS: usize = 20;
    const EVENTS: u64 = 10;
    let mut followed = fresh.store.follow();
    let mut writers = tokio::task::JoinSet::new();
    for number in 0..RUNS {
        let run = fresh.queue(&format!("run-{number}"), "energy").await;
        let store = fresh.store.clone();
        writers.spawn(async move {
            for turn in 0..EVENTS {
                let event = store.append(&run, entered(RunState::Running)).await.unwrap();
                assert_eq!((&event.run, event.seq), (&run, 3 + turn), "each is told of its own");
            }
            run
        });
    }
    let runs: Vec<RunId> = writers.join_all().await;
    for run in &runs {
        let events = fresh.store.all_events(run).await.unwrap();
        let places: Vec<u64> = events.iter().map(|event| event.seq).collect();
        assert_eq!(places, (1..=2 + EVENTS).collect::<Vec<_>>());
    }
    // Followers see each run in the order of its log.
    let mut seen: std::collections::HashMap<RunId, u64> = std::collections::HashMap::new();
    while let Ok(event) = followed.try_recv() {
        let last = seen.entry(event.run).or_default();
        assert_eq!(event.seq, *last + 1);
        *last = event.seq;
    }
    assert!(runs.iter().all(|run| seen[run] == 2 + EVENTS));
}

pub(super) async fn nothing_follows_the_last_event(fresh: &Fresh) {
    let run = fresh.queue("run-1", "energy").await;
    fresh.store.append(&run, ended(RunState::Failed)).await.unwrap();
    let late = fresh.store.append(&run, entered(RunState::Running)).await.unwrap_err();
    assert_eq!(late.code(), "store::run_ended");
    assert_eq!(fresh.store.all_events(&run).await.unwrap().len(), 3);
}

pub(super) async fn a_refusal_concerns_nobody_else(fresh: &Fresh) {
    let mut appending = tokio::task::JoinSet::new();
    let nobody = RunId::parse("nobody").unwrap();
    for number in 0..10 {
        let run = fresh.queue(&format!("run-{number}"), "energy").await;
        for run in [nobody.clone(), run] {
            let store = fresh.store.clone();
            let what = entered(RunState::Running);
            appending.spawn(async move { store.append(&run, what).await.map_err(|error| error.code()) });
        }
    }
    let results = appending.join_all().await;
    let refused = results.iter().filter(|result| **result == Err("store::unknown_run")).count();
    assert_eq!((refused, results.iter().filter(|result| result.is_ok()).count()), (10, 10));
}
