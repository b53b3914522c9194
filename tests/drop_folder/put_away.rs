//! Where files go when their runs have ended.

use std::fs;
use std::path::Path;

use tidemill::event::state::{InputState, RunState};
use tidemill::run::intake::WorkflowRoute;
use tidemill::store::RunFilter;
use tidemill::workflow::trigger::{Afterwards, Drop};

use super::harness::{Act, open};
use super::route;
use crate::support::project::Project;

fn going(on_success: Option<Afterwards>, on_failure: Option<Afterwards>) -> Vec<WorkflowRoute> {
    let drop = Drop { on_success, on_failure, ..Drop::new("{case}/*") };
    vec![WorkflowRoute { drops: vec![drop], ..route("energy", "") }]
}

fn into(folder: &str) -> Afterwards {
    Afterwards::Move(folder.to_owned())
}

#[tokio::test]
async fn a_file_goes_where_its_drop_says_and_never_over_another() {
    let project = Project::new().file("inbox/42/a.csv", "abc").file("archive/42/a.csv", "old");
    let mut watching = open(&project, going(Some(into("archive/{case}")), None), &[]).await.unwrap();
    let run = watching.begun().await.id;
    let (state, to) = watching.put_away().await;
    assert_eq!((state, to), (InputState::Done, format!("archive/42/a-{run}.csv").into()));
    watching.finish().await;
    assert_eq!(fs::read(project.path("archive/42/a.csv")).unwrap(), b"old");
}

#[tokio::test]
async fn a_deleted_file_is_gone_and_done() {
    let project = Project::new().file("inbox/42/a.csv", "abc");
    let mut watching = open(&project, going(Some(Afterwards::Delete), None), &[]).await.unwrap();
    assert_eq!(watching.put_away().await, (InputState::Done, "".into()));
    watching.finish().await;
    for folder in ["inbox", "processed", ".tidemill/claimed"] {
        assert!(project.files(folder).is_empty(), "{folder}");
    }
}

#[tokio::test]
async fn a_kept_file_stays_and_runs_again_only_when_it_has_changed() {
    let project = Project::new().file("inbox/42/a.csv", "abc");
    let routes = || going(Some(Afterwards::Keep), Some(into("rejected")));
    let mut watching = open(&project, routes(), &[]).await.unwrap();
    assert_eq!(watching.put_away().await, (InputState::Done, "inbox/42/a.csv".into()));
    watching.finish().await;
    // Neither by another look nor by a restart: the next one to come is another file.
    let mut watching = open(&project, routes(), &[]).await.unwrap();
    project.put("inbox/42/b.csv", "abc");
    assert_eq!(watching.put_away().await.1, Path::new("inbox/42/b.csv"));
    project.put("inbox/42/a.csv", "abcd");
    assert_eq!(watching.put_away().await.1, Path::new("inbox/42/a.csv"));
    let store = watching.store.clone();
    watching.finish().await;
    assert_eq!(store.runs(&RunFilter::default()).await.unwrap().len(), 3);
    // That they were taken is not forgotten as long as they stand there.
    let late = "2036-01-01T00:00:00Z".parse().unwrap();
    store.forget_runs(&store.outlived(late).await.unwrap()).await.unwrap();
    store.forget_inputs(late).await.unwrap();
    assert!(store.runs(&RunFilter::default()).await.unwrap().is_empty());
    let kept: Vec<String> = store.kept().await.unwrap().iter().map(|row| row.path.display()).collect();
    assert_eq!(kept, ["42/b.csv", "42/a.csv"]);
    assert!(project.files(".tidemill/claimed").is_empty());
}

#[tokio::test]
async fn a_file_that_would_be_kept_leaves_the_inbox_when_its_run_fails() {
    let project = Project::new().file("inbox/42/a.csv", "abc");
    let routes = going(Some(Afterwards::Keep), Some(into("rejected")));
    let mut watching = open(&project, routes, &[Act::End(RunState::Failed)]).await.unwrap();
    assert_eq!(watching.put_away().await, (InputState::Failed, "rejected/a.csv".into()));
    watching.finish().await;
    assert!(project.files("inbox").is_empty() && project.files(".tidemill/claimed").is_empty());
    assert_eq!(project.files("rejected").len(), 2);
}

#[tokio::test]
async fn keeping_beats_moving_and_moving_beats_deleting() {
    let said = [
        ("a", Some(Afterwards::Delete)),
        ("b", Some(into("archive"))),
        ("c", Some(Afterwards::Keep)),
        ("d", None),
    ];
    for (names, place) in [("ab", "archive"), ("abc", "inbox"), ("ad", "processed"), ("bd", "archive")] {
        let project = Project::new().file("inbox/x.csv", "abc");
        let drops = said.iter().filter(|(name, _)| names.contains(name));
        let routes = drops.map(|(name, on_success)| {
            let drop = Drop { on_success: on_success.clone(), ..Drop::new("*") };
            WorkflowRoute { drops: vec![drop], ..route(name, "") }
        });
        let mut watching = open(&project, routes.collect(), &[]).await.unwrap();
        assert_eq!(watching.put_away().await.1, Path::new(place).join("x.csv"), "{names}");
        watching.finish().await;
    }
}

#[tokio::test]
async fn a_captured_name_leads_out_of_no_folder() {
    let project = Project::new().file("inbox/42/..a.b.csv", "abc").file("inbox/42/x..b.csv", "abc");
    let drop = Drop { on_success: Some(into("archive/{name}")), ..Drop::new("42/x{name}.b.csv") };
    let routes = vec![WorkflowRoute { drops: vec![drop], ..route("energy", "") }];
    let mut watching = open(&project, routes, &[]).await.unwrap();
    assert_eq!(watching.put_away().await.1, Path::new("archive/_/x..b.csv"));
    watching.finish().await;
}
