//! Which messages stand in the outbox, and where each stands.

use tidemill::event::state::RunState;
use tidemill::store::{DeliveryState, RunFilter};
use tidemill::workflow::notify::Moment;

use super::Telling;

#[tokio::test]
async fn a_message_stands_beside_each_moment_a_target_wants_to_know_of() {
    let telling = Telling::open().await;
    let targets = [telling.target(&Moment::ALL), telling.target(&Moment::BAD_ENDS)];
    let run = telling.queue("20261130-230000-aaaa", &targets).await;
    telling.enter(&run, RunState::Preparing).await;
    telling.enter(&run, RunState::Running).await;
    telling.end(&run, RunState::Rejected).await;
    let told: Vec<String> =
        telling.all().await.iter().map(|one| format!("{} {}", one.moment.as_str(), one.place)).collect();
    assert_eq!(told, ["run.queued 1", "run.started 1", "run.rejected 1", "run.rejected 2"]);
    assert!(telling.all().await.iter().all(|one| one.state == DeliveryState::Waiting));
}

#[tokio::test]
async fn every_end_is_told_by_its_name() {
    let telling = Telling::open().await;
    for (index, (state, moment)) in [
        (RunState::Succeeded, Moment::Succeeded),
        (RunState::Rejected, Moment::Rejected),
        (RunState::Denied, Moment::Denied),
        (RunState::Exhausted, Moment::Exhausted),
        (RunState::Failed, Moment::Failed),
        (RunState::Cancelled, Moment::Cancelled),
    ]
    .into_iter()
    .enumerate()
    {
        let run = telling.queue(&format!("20261130-230000-aaa{index}"), &[telling.target(&[moment])]).await;
        telling.end(&run, state).await;
        assert_eq!(telling.all().await[index].moment, moment);
    }
}

#[tokio::test]
async fn a_run_tells_those_its_own_script_named() {
    let telling = Telling::open().await;
    let old = telling.queue("20261130-230000-aaaa", &[telling.target(&[Moment::Succeeded])]).await;
    let new = telling.queue("20261130-230000-bbbb", &[]).await;
    for run in [&old, &new] {
        telling.end(run, RunState::Succeeded).await;
    }
    assert_eq!(telling.only().await.run, old);
}

#[tokio::test]
async fn messages_are_forgotten_with_their_run() {
    let telling = Telling::open().await;
    let run = telling.queue("20261130-230000-aaaa", &[telling.target(&[Moment::Succeeded])]).await;
    telling.end(&run, RunState::Succeeded).await;
    telling.store.forget_runs(&[run]).await.unwrap();
    assert!(telling.store.runs(&RunFilter::default()).await.unwrap().is_empty());
    assert!(telling.all().await.is_empty());
}
