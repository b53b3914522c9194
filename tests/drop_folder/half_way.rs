//! What a process leaves half-way when it is killed while it puts a file away: the next one finishes it and leaves
//! nothing of it.

use std::fs;
use std::path::Path;

use tidemill::event::state::{InputState, RunState};
use tidemill::store::Store;

use super::crash::{ended, left_behind};
use super::harness::watching;
use crate::support::project::Project;

/// A file whose run has ended in that state, and which is bound for there. Gives where it is still kept.
async fn bound_for(project: &Project, state: RunState, to: &str) -> std::path::PathBuf {
    let run = left_behind(project, 1, Some(ended(state))).await;
    let store = Store::open(&project.path(".tidemill")).await.unwrap();
    let input = store.run(&run).await.unwrap().unwrap().input.unwrap();
    store.bound_for(input, Path::new(to)).await.unwrap();
    let claimed = store.claimed(input).await.unwrap().unwrap();
    store.close().await;
    claimed
}

#[tokio::test]
async fn a_file_that_was_copied_to_another_file_system_stands_there_once() {
    let project = Project::new();
    let claimed = bound_for(&project, RunState::Succeeded, "processed/a.csv").await;
    project.put("processed/a.csv", fs::read(&claimed).unwrap());
    watching(&project, &[]).await.finish().await;
    assert_eq!(project.files("processed"), [Path::new("a.csv")]);
    assert!(!claimed.exists(), "the original stays");
}

#[tokio::test]
async fn another_file_that_came_there_meanwhile_is_no_copy() {
    let project = Project::new();
    bound_for(&project, RunState::Succeeded, "processed/a.csv").await;
    project.put("processed/a.csv", "another");
    watching(&project, &[]).await.finish().await;
    assert_eq!(project.files("processed"), ["a-20261130-230000-aaaa.csv", "a.csv"].map(Path::new));
    assert_eq!(fs::read(project.path("processed/a.csv")).unwrap(), b"another");
}

#[tokio::test]
async fn half_a_reason_is_written_anew() {
    let project = Project::new();
    bound_for(&project, RunState::Failed, "failed/a.csv").await;
    project.put("failed/.reason-20261130-230000-aaaa", "half");
    watching(&project, &[]).await.finish().await;
    assert_eq!(project.files("failed"), ["a.csv", "a.csv.reason.txt"].map(Path::new));
}

#[tokio::test]
async fn the_empty_folder_of_a_file_that_was_put_away_goes() {
    let project = Project::new();
    let claimed = bound_for(&project, RunState::Succeeded, "processed/a.csv").await;
    fs::create_dir(project.path("processed")).unwrap();
    fs::rename(&claimed, project.path("processed/a.csv")).unwrap();
    let store = Store::open(&project.path(".tidemill")).await.unwrap();
    let [row] = &store.inputs(&[InputState::Claimed]).await.unwrap()[..] else { panic!("one input") };
    store.finish(row.id, InputState::Done, "it was put away").await.unwrap();
    store.close().await;
    watching(&project, &[]).await.finish().await;
    assert!(!claimed.parent().unwrap().exists(), "its folder is left");
}

#[tokio::test]
async fn what_a_run_had_staged_that_is_given_up_goes() {
    let project = Project::new();
    let run = left_behind(&project, 10, None).await;
    project.put(format!("outbox/energy/.staging-{run}/a.txt"), "half");
    watching(&project, &[]).await.finish().await;
    assert!(project.files("outbox").is_empty(), "{:?}", project.files("outbox"));
}
