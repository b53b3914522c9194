//! What a drop says: captures, how long and how large, what stood there before, in which order, and loops.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use tidemill::event::state::InputState;
use tidemill::run::intake::WorkflowRoute;
use tidemill::workflow::trigger::{Afterwards, Drop, Existing, Order};

use super::{Inbox, SETTLE, route};
use crate::support::project::Project;

/// The inputs of all runs, in the order in which they were queued.
async fn order(inbox: &Inbox) -> Vec<String> {
    let mut runs = inbox.runs().await;
    runs.reverse();
    runs.iter().map(|run| run.inputs[0].path.display()).collect()
}

#[tokio::test]
async fn what_a_path_says_becomes_params() {
    let project = Project::new().file("inbox/contracts/42/a-7.txt", "abc");
    project.put(Path::new("inbox/contracts").join(OsStr::from_bytes(b"\xff")).join("b-8.txt"), "abc");
    let mut inbox = Inbox::dropping(project, Drop::new("contracts/{case}/{kind}-{number}.txt")).await;
    assert_eq!(inbox.settle().await, 2);
    let mut told: Vec<String> =
        inbox.runs().await.into_iter().map(|run| serde_json::Value::Object(run.params).to_string()).collect();
    told.sort();
    let plain = json!({ "case": "42", "kind": "a", "number": "7" });
    let broken = json!({ "case": "\\xff", "kind": "b", "number": "8", "not_utf8": ["case"] });
    assert_eq!(told, [plain.to_string(), broken.to_string()]);
}

#[tokio::test]
async fn each_drop_says_how_long_a_file_must_be_quiet_and_all_must_agree() {
    let settle = |seconds| Some(Duration::from_secs(seconds));
    let at_once = Drop { settle: settle(0), ..Drop::new("*.now") };
    let project = Project::new().file("inbox/a.now", "abc");
    let mut inbox = Inbox::dropping(project, at_once.clone()).await;
    assert_eq!(inbox.tick().await, 1);

    let slow = Drop { settle: settle(10), ..Drop::new("*") };
    let routes = vec![
        WorkflowRoute { drops: vec![at_once], ..route("fast", "") },
        WorkflowRoute { drops: vec![slow], ..route("slow", "") },
    ];
    let mut inbox = Inbox::open(Project::new().file("inbox/a.now", "abc"), routes).await;
    assert_eq!(inbox.tick().await, 0);
    assert_eq!(inbox.after(Duration::from_secs(9)).await, 0);
    assert_eq!(inbox.after(Duration::from_secs(1)).await, 2);
}

#[tokio::test]
async fn sizes_are_held_and_said() {
    let drop = Drop { min_size: 3, max_size: Some(5), ..Drop::new("*") };
    let project =
        Project::new().file("inbox/small", "ab").file("inbox/fits", "abc").file("inbox/large", "abcdef");
    let mut inbox = Inbox::dropping(project, drop).await;
    assert_eq!(inbox.settle().await, 1);
    let small = "it has 2 B; it waits until it has 3 B (`min_size` of energy)";
    assert_eq!(inbox.standing("small").await, (InputState::Settling, small.to_owned()));
    let large = "it has 6 B, which is above `max_size`: 5 B of energy (rule `max_size`)";
    assert_eq!(inbox.standing("large").await, (InputState::Ignored, large.to_owned()));
    inbox.project.put("inbox/small", "abc");
    inbox.project.put("inbox/large", "abc");
    assert_eq!(inbox.settle().await, 2);
}

#[tokio::test]
async fn what_stood_there_before_is_left_until_it_changes() {
    let drop = Drop { existing: Existing::Ignore, ..Drop::new("*") };
    let project = Project::new().file("inbox/old", "abc");
    let mut inbox = Inbox::dropping(project, drop.clone()).await;
    assert_eq!(inbox.settle().await, 0);
    inbox.project.put("inbox/new", "abc");
    assert_eq!(inbox.settle().await, 1);
    let reason = "it stood there before it was watched for, `existing = \"ignore\"` of energy, until it changes (rule \
                  `existing`)";
    assert_eq!(inbox.standing("old").await, (InputState::Ignored, reason.to_owned()));
    // It is remembered over a restart, as is what came meanwhile.
    inbox.project.put("inbox/meanwhile", "abc");
    let mut inbox = Inbox::dropping(inbox.project, drop).await;
    assert_eq!(inbox.settle().await, 0);
    inbox.project.put("inbox/old", "changed");
    assert_eq!(inbox.settle().await, 1);
}

#[tokio::test]
async fn what_came_while_nobody_watched_is_taken_since_the_last_run() {
    let drop = Drop { existing: Existing::SinceLastRun, ..Drop::new("*") };
    let mut inbox = Inbox::dropping(Project::new().file("inbox/old", "abc"), drop.clone()).await;
    assert_eq!(inbox.settle().await, 0);
    inbox.project.put("inbox/meanwhile", "abc");
    let mut inbox = Inbox::dropping(inbox.project, drop).await;
    assert_eq!(inbox.settle().await, 1);
    assert_eq!(order(&inbox).await, ["meanwhile"]);
}

#[tokio::test]
async fn files_are_taken_in_the_order_that_is_asked_for() {
    for (wanted, expected) in
        [(Order::Arrival, ["b", "a", "c"]), (Order::Name, ["a", "b", "c"]), (Order::Mtime, ["c", "b", "a"])]
    {
        let drop = Drop { order: wanted, ..Drop::new("*") };
        let mut inbox = Inbox::dropping(Project::new(), drop).await;
        for (name, mtime) in [("b", 2), ("a", 3), ("c", 1)] {
            inbox.project.put(format!("inbox/{name}"), "abc");
            let file = fs::File::options().write(true).open(inbox.project.path("inbox").join(name)).unwrap();
            file.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(mtime)).unwrap();
            inbox.tick().await;
            inbox.clock.advance(Duration::from_millis(10));
        }
        inbox.after(SETTLE).await;
        assert_eq!(order(&inbox).await, expected, "{wanted:?}");
    }
}

#[tokio::test]
async fn a_path_that_comes_again_and_again_is_left_alone_for_a_while() {
    let project = Project::new().config("[watch]\nloop_limit = 3\n");
    let drop = Drop { settle: Some(Duration::ZERO), ..Drop::new("*") };
    let mut inbox = Inbox::dropping(project, drop).await;
    for turn in 0..5 {
        inbox.project.put("inbox/a", turn.to_string());
        inbox.after(Duration::from_secs(1)).await;
    }
    assert_eq!(inbox.runs().await.len(), 3);
    let (state, reason) = inbox.standing("a").await;
    assert_eq!(state, InputState::Blocked);
    assert!(
        reason.starts_with("a loop: it was taken 3 times within a minute (`loop_limit` under [watch])"),
        "{reason}"
    );
    assert_eq!(inbox.after(Duration::from_mins(4)).await, 0);
    assert_eq!(inbox.after(Duration::from_mins(1)).await, 1);
}

#[tokio::test]
async fn other_workflows_can_be_watched_for_without_a_restart() {
    let project = Project::new().file("inbox/a.csv", "abc");
    let mut inbox = Inbox::with(project, &[("energy", "*.txt")]).await;
    assert_eq!(inbox.settle().await, 0);
    let drop = Drop { on_success: Some(Afterwards::Keep), ..Drop::new("*.csv") };
    inbox.desk.set_workflows(vec![WorkflowRoute { drops: vec![drop], ..route("other", "") }]).unwrap();
    assert_eq!(inbox.settle().await, 1);
    assert_eq!(inbox.runs().await[0].workflow, "other");
}
