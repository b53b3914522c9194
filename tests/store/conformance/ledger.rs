//! The ledger: a file and its runs.

use tidemill::event::id::{Digest, RunId};
use tidemill::event::input::{Fingerprint, InputChange, RawPath};
use tidemill::event::state::InputState;
use tidemill::event::trigger::Trigger;
use tidemill::store::{Claim, NewRun, RunFilter};

use super::Fresh;

pub(super) async fn a_file_is_claimed_with_its_runs_or_not_at_all(fresh: &Fresh) {
    let fingerprint = Fingerprint { size: 3, mtime_ns: 1, inode: 2, device: 3 };
    let change =
        InputChange { path: RawPath::new("a.csv"), fingerprint, state: InputState::Ready, reason: None };
    let input = fresh.store.ready(&[change]).await.unwrap()[0].input;
    let run = |id: &str, workflow: &str| {
        let at = "2026-11-30T23:00:00Z".parse().unwrap();
        let id = RunId::parse(id).unwrap();
        let new = NewRun::new(id, workflow, Trigger::Drop, Digest::of("script"), "analyst", at);
        NewRun { input: Some(input), ..new }
    };
    let claim = |runs| Claim::of(input, fingerprint, Digest::of("abc"), runs);
    let twice = vec![run("run-1", "energy"), run("run-2", "energy")];
    assert!(fresh.store.claim(&[claim(twice)]).await.is_err(), "one run of a workflow");
    assert!(fresh.store.runs(&RunFilter::default()).await.unwrap().is_empty());
    assert_eq!(fresh.store.input(input).await.unwrap().unwrap().state, InputState::Ready);
    let once = vec![run("run-1", "energy"), run("run-2", "other")];
    fresh.store.claim(&[claim(once.clone())]).await.unwrap();
    assert_eq!(fresh.store.input(input).await.unwrap().unwrap().state, InputState::Claimed);
    assert_eq!(fresh.waiting(10).await, ["run-1", "run-2"]);
    assert_eq!(fresh.store.claim(&[claim(once)]).await.unwrap_err().code(), "store::claimed_twice");
}
