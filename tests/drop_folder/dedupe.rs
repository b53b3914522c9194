//! The same again: what counts as that, for how long, and what becomes of it.

use std::path::Path;
use std::time::Duration;

use tidemill::event::state::{InputState, RunState};
use tidemill::run::intake::WorkflowRoute;
use tidemill::store::RunFilter;
use tidemill::workflow::trigger::{Dedupe, Drop};

use super::harness::{Act, open};
use super::{Inbox, route};
use crate::support::project::Project;

fn dropping(dedupe: Dedupe) -> Drop {
    Drop { dedupe, ..Drop::new("*") }
}

#[tokio::test]
async fn what_counts_as_the_same_is_what_the_drop_says() {
    for (dedupe, runs) in
        [(Dedupe::None, 5), (Dedupe::Path, 2), (Dedupe::Content, 2), (Dedupe::PathAndContent, 3)]
    {
        let mut inbox = Inbox::dropping(Project::new(), dropping(dedupe)).await;
        for (name, content) in [("a", "1"), ("a", "1"), ("b", "1"), ("a", "2"), ("a", "1")] {
            inbox.project.put(format!("inbox/{name}"), content);
            inbox.settle().await;
        }
        assert_eq!(inbox.runs().await.len(), runs, "{dedupe:?}");
        assert!(inbox.project.files("inbox").is_empty());
    }
}

#[tokio::test]
async fn of_two_equal_files_that_come_at_once_one_is_the_duplicate() {
    let project = Project::new().file("inbox/a", "1").file("inbox/b", "1");
    let mut inbox = Inbox::dropping(project, dropping(Dedupe::Content)).await;
    assert_eq!(inbox.settle().await, 1);
    let run = inbox.runs().await.remove(0);
    let (state, reason) = inbox.standing("b").await;
    let wanted = format!(
        "the same content as in run {} (`dedupe = \"content\"` of energy); it stands in processed/b",
        run.id
    );
    assert_eq!((state, reason), (InputState::Duplicate, wanted));
    let beside = std::fs::read_to_string(inbox.project.path("processed/b.reason.txt")).unwrap();
    assert!(
        beside.starts_with("b was not processed: it is a duplicate.\n") && beside.contains(run.id.as_str())
    );
    assert!(!inbox.project.files(".tidemill/claimed").contains(&"b".into()));
}

#[tokio::test]
async fn a_window_ends_and_a_run_that_failed_does_not_count() {
    let drop = Drop { window: Some(Duration::from_hours(1)), ..dropping(Dedupe::Content) };
    let mut inbox = Inbox::dropping(Project::new(), drop).await;
    for (wait, runs) in [(0, 1), (30, 1), (31, 2)] {
        inbox.clock.advance(Duration::from_mins(wait));
        inbox.project.put("inbox/a", "1");
        inbox.settle().await;
        assert_eq!(inbox.runs().await.len(), runs, "after {wait} minutes");
    }

    let project = Project::new().file("inbox/a", "1");
    let routes = vec![WorkflowRoute { drops: vec![dropping(Dedupe::PathAndContent)], ..route("energy", "") }];
    let mut watching = open(&project, routes, &[Act::End(RunState::Failed)]).await.unwrap();
    assert_eq!(watching.put_away().await.0, InputState::Failed);
    std::fs::rename(project.path("failed/a"), project.path("inbox/a")).unwrap();
    assert_eq!(watching.put_away().await.0, InputState::Done, "it is tried again");
    let store = watching.store.clone();
    watching.finish().await;
    assert_eq!(store.runs(&RunFilter::default()).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_duplicate_for_one_workflow_is_none_for_another() {
    let project = Project::new().file("inbox/a", "1");
    let routes = vec![
        WorkflowRoute { drops: vec![dropping(Dedupe::Content)], ..route("once", "") },
        WorkflowRoute { drops: vec![dropping(Dedupe::None)], ..route("always", "") },
    ];
    let mut inbox = Inbox::open(project, routes).await;
    assert_eq!(inbox.settle().await, 2);
    inbox.project.put("inbox/a", "1");
    assert_eq!(inbox.settle().await, 1);
    let (state, reason) = inbox.standing("a").await;
    assert_eq!(state, InputState::Claimed);
    assert!(reason.starts_with("claimed for always; the same content as in run "), "{reason}");
}

#[tokio::test]
async fn a_duplicate_that_could_not_be_put_away_is_at_the_next_start() {
    let project = Project::new().file("inbox/a", "1").file("inbox/b", "1").file("processed", "in the way");
    let mut inbox = Inbox::dropping(project, dropping(Dedupe::Content)).await;
    inbox.tick().await;
    inbox.clock.advance(super::SETTLE);
    let scan = inbox.look();
    assert_eq!(inbox.desk.tick(&scan).await.unwrap(), 1, "what cannot be put away holds nobody up");
    let Inbox { project, store, desk, .. } = inbox;
    drop(desk);
    store.close().await;
    std::fs::remove_file(project.path("processed")).unwrap();
    let routes = vec![WorkflowRoute { drops: vec![dropping(Dedupe::Content)], ..route("energy", "") }];
    let mut watching = open(&project, routes, &[]).await.unwrap();
    watching.put_away().await;
    watching.put_away().await;
    watching.finish().await;
    let files = project.files("processed");
    assert_eq!(files, ["a", "b", "b.reason.txt"].map(Path::new));
}
