//! `tidemill watch`, killed in the middle of a run and started again.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use serde_json::{Value, json};
use tidemill::event::resumed::How;
use tidemill::event::state::RunState;
use tidemill::event::{Event, ToolOutcome, What};

use super::daemon::{Mill, docker, end, left_of};
use crate::support::wire::Reply;

fn shell(command: &str) -> (&'static str, Value) {
    ("shell", json!({ "command": command, "timeout_seconds": null }))
}

fn resumed(events: &[Event]) -> Vec<How> {
    let how = events.iter().filter_map(|event| match &event.what {
        What::Resumed { how, .. } => Some(*how),
        _ => None,
    });
    how.collect()
}

fn outcomes(events: &[Event]) -> Vec<ToolOutcome> {
    let outcomes = events.iter().filter_map(|event| match &event.what {
        What::ToolEnded { outcome, .. } => Some(*outcome),
        _ => None,
    });
    outcomes.collect()
}

fn container(events: &[Event]) -> String {
    let started = events.iter().rev().find_map(|event| match &event.what {
        What::SandboxStarted { container, .. } => Some(container.clone()),
        _ => None,
    });
    started.unwrap()
}

fn begins(turn: u32) -> impl Fn(&What) -> bool {
    move |what| matches!(what, What::ToolStarted { turn: begun, .. } if *begun == turn)
}

/// The receipt says how often it was interrupted.
fn interruptions(mill: &Mill, run: &tidemill::store::RunRow) -> Value {
    let receipt = mill.project.path(run.published.as_ref().unwrap()).join("receipt.json");
    let receipt: Value = serde_json::from_slice(&std::fs::read(receipt).unwrap()).unwrap();
    receipt["interruptions"].clone()
}

#[tokio::test]
async fn a_command_goes_on_without_its_host_and_is_not_begun_again() {
    let mill = Mill::build().await;
    mill.wire
        .reply(Reply::calls([shell("mkdir -p output; echo begin >> log; sleep 4; echo end >> log; cat log")]))
        .reply(Reply::calls([shell("cp log output/a.txt")]))
        .reply(Reply::text("done"));
    mill.project.put("inbox/a.txt", "a");
    let first = mill.watch();
    let (_, events) = mill.until(begins(1)).await;
    let before = container(&events);
    end(first, "KILL").await;
    let second = mill.watch();
    let (run, events) = mill.ended().await;
    end(second, "TERM").await;
    assert_eq!(run.state, RunState::Succeeded, "{:?} {events:#?}", run.report);
    assert_eq!(mill.artifact(&run), "begin\nend\n", "a command ran twice, or was cut");
    assert_eq!(resumed(&events), [How::SameSandbox]);
    assert_eq!(outcomes(&events), [ToolOutcome::Done; 2]);
    assert_eq!(container(&events), before);
    assert_eq!(interruptions(&mill, &run), 1);
    assert_eq!(
        (mill.wire.requests().len(), mill.wire.complaints()),
        (3, Vec::new()),
        "a call was paid twice"
    );
    assert_eq!(left_of(&run).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_sandbox_that_is_lost_comes_back_as_its_last_turn_left_it() {
    let mill = Mill::build().await;
    mill.wire
        .reply(Reply::calls([shell("mkdir -p a/b output; echo kept > a/b/c; chmod 750 a/b/c; rm notes.txt")]))
        .reply(Reply::calls([shell("echo lost > a/b/d; sleep 300")]))
        .reply(Reply::calls([shell(
            "{ cat a/b/c; stat -c %a a/b/c; ls a/b; ls; cat input/data.txt; } > output/a.txt",
        )]))
        .reply(Reply::text("done"));
    mill.project.put("inbox/a.txt", "the input");
    let first = mill.watch();
    let (run, events) = mill.until(begins(2)).await;
    end(first, "KILL").await;
    docker(&["rm", "-f", &container(&events)]).await;
    let second = mill.watch();
    let (_, events) = {
        let ended = mill.ended().await;
        end(second, "TERM").await;
        ended
    };
    let run = mill.store.run(&run.id).await.unwrap().unwrap();
    assert_eq!(run.state, RunState::Succeeded, "{:?} {events:#?}", run.report);
    assert_eq!(mill.artifact(&run), "kept\n750\nc\na\ninput\noutput\nthe input");
    assert_eq!(resumed(&events), [How::Checkpoint { turn: 1 }]);
    assert_eq!(outcomes(&events), [ToolOutcome::Done, ToolOutcome::Interrupted, ToolOutcome::Done]);
    assert_eq!((mill.wire.requests().len(), mill.wire.complaints()), (4, Vec::new()));
    assert_eq!(left_of(&run).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_model_that_was_being_asked_is_asked_again_and_both_are_booked() {
    let mill = Mill::build().await;
    mill.wire.reply(Reply::text("never").stall_after(0));
    mill.project.put("inbox/a.txt", "a");
    let first = mill.watch();
    mill.until(|what| matches!(what, What::ModelRequested { .. })).await;
    end(first, "KILL").await;
    // Whether the request had gone out or not, the one of the second process gets these.
    if mill.wire.requests().is_empty() {
        mill.wire.reply(Reply::text("never"));
    }
    let second = {
        mill.wire.otherwise(|seen| match seen.items().len() {
            1 => Reply::calls([shell("mkdir -p output; echo words > output/a.txt")]),
            _ => Reply::text("done"),
        });
        mill.watch()
    };
    let (run, events) = mill.ended().await;
    end(second, "TERM").await;
    assert_eq!(run.state, RunState::Succeeded, "{:?} {events:#?}", run.report);
    let booked = events.iter().filter(|event| matches!(event.what, What::ModelCut { .. })).count();
    assert_eq!(booked, 1);
    assert_eq!(resumed(&events), [How::SameSandbox]);
}

#[tokio::test]
async fn a_stop_leaves_nothing_behind_and_the_run_goes_on_with_its_files() {
    let mill = Mill::build().await;
    mill.wire
        .reply(Reply::calls([shell("echo kept > a; sleep 300")]))
        .reply(Reply::calls([shell("mkdir -p output; cp a output/a.txt")]))
        .reply(Reply::text("done"));
    mill.project.put("inbox/a.txt", "a");
    let first = mill.watch();
    let (run, events) = mill.until(begins(1)).await;
    // What it has printed or written by now is not told; that it runs is.
    let container = container(&events);
    while docker(&["exec", &container, "cat", "/workspace/a"]).await != ["kept"] {}
    end(first, "TERM").await;
    assert_eq!(left_of(&run).await, Vec::<String>::new(), "a stop left its container");
    let second = mill.watch();
    let (run, events) = mill.ended().await;
    end(second, "TERM").await;
    assert_eq!(run.state, RunState::Succeeded, "{:?} {events:#?}", run.report);
    assert_eq!(mill.artifact(&run), "kept\n");
    assert_eq!(resumed(&events), [How::Checkpoint { turn: 1 }]);
    assert_eq!(mill.wire.requests().len(), 3, "a call was paid twice");
}
