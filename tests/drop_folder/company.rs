//! Sentinels and sidecars: what is waited for, what it says, and where it goes.

use std::fs;
use std::path::Path;

use serde_json::json;
use tidemill::event::input::RawPath;
use tidemill::event::state::{InputState, RunState};
use tidemill::run::intake::WorkflowRoute;
use tidemill::workflow::trigger::{Afterwards, Drop};

use super::harness::{Act, open};
use super::{Inbox, SETTLE, route};
use crate::support::project::Project;

fn marked() -> Drop {
    Drop { ready_when: Some("{name}.done".to_owned()), ..Drop::new("*.csv") }
}

fn told() -> Drop {
    Drop { params_from: Some("{stem}.json".to_owned()), ..Drop::new("{kind}-*") }
}

#[tokio::test]
async fn a_file_waits_for_its_sentinel_which_is_no_input() {
    let project = Project::new().file("inbox/a.csv", "abc").file("inbox/b.csv.done", "");
    let mut inbox = Inbox::dropping(project, marked()).await;
    assert_eq!(inbox.settle().await, 0);
    let missing = "`a.csv.done` is missing (`ready_when` of energy)";
    assert_eq!(inbox.standing("a.csv").await, (InputState::Incomplete, missing.to_owned()));
    let orphan = "the file that it belongs to is not here (`ready_when` of energy; rule `sentinel`)";
    assert_eq!(inbox.standing("b.csv.done").await, (InputState::Ignored, orphan.to_owned()));
    inbox.project.put("inbox/a.csv.done", "");
    assert_eq!(inbox.tick().await, 1);
    // Both are taken.
    assert_eq!(inbox.project.files("inbox"), [Path::new("b.csv.done")]);
    assert_eq!(inbox.standing("a.csv.done").await.0, InputState::Claimed);
    assert_eq!(inbox.runs().await[0].inputs.len(), 1);
    assert_eq!(inbox.settle().await, 0);
}

#[tokio::test]
async fn a_sidecar_brings_params_and_a_path_has_the_last_word() {
    let text = r#"{ "customer": "Tidemill", "kind": "lie", "rows": [1, 2] }"#;
    let project = Project::new().file("inbox/energy-1.csv", "abc").file("inbox/energy-1.json", text);
    let mut inbox = Inbox::dropping(project, told()).await;
    assert_eq!(inbox.settle().await, 1);
    let params = serde_json::Value::Object(inbox.runs().await.remove(0).params);
    assert_eq!(params, json!({ "kind": "energy", "customer": "Tidemill", "rows": [1, 2] }));
    assert!(inbox.project.files("inbox").is_empty());
}

#[tokio::test]
async fn a_sidecar_that_cannot_be_read_blocks_its_file_until_it_is_mended() {
    for (text, why) in [
        ("{ broken", "it is not JSON: key must be a string at line 1 column 3"),
        ("[]", "it is JSON and no object"),
        (&" ".repeat(1_000_001), "it has more than 1.0 MB"),
    ] {
        let project = Project::new().file("inbox/energy-1.csv", "abc").file("inbox/energy-1.json", text);
        let mut inbox = Inbox::dropping(project, told()).await;
        assert_eq!(inbox.settle().await, 0);
        let reason = format!("`energy-1.json` (`params_from`): {why}");
        assert_eq!(inbox.standing("energy-1.csv").await, (InputState::Blocked, reason));
        assert_eq!(inbox.project.files("inbox").len(), 2);
        inbox.project.put("inbox/energy-1.json", "{}");
        assert_eq!(inbox.tick().await + inbox.after(SETTLE * 5).await, 1);
    }
}

#[tokio::test]
async fn what_goes_with_a_file_is_put_away_with_it() {
    for (end, folder) in [(RunState::Succeeded, "processed"), (RunState::Failed, "failed")] {
        let project = Project::new().file("inbox/x/a.csv", "abc").file("inbox/x/a.csv.done", "");
        let drop = Drop { glob: "x/*.csv".to_owned(), ..marked() };
        let routes = vec![WorkflowRoute { drops: vec![drop], ..route("energy", "") }];
        let mut watching = open(&project, routes, &[Act::End(end)]).await.unwrap();
        watching.put_away().await;
        watching.finish().await;
        let files = project.files(folder);
        let mut wanted = vec![Path::new("x/a.csv"), Path::new("x/a.csv.done")];
        if end == RunState::Failed {
            wanted.push(Path::new("x/a.csv.reason.txt"));
        }
        assert_eq!(files, wanted);
        assert!(project.files("inbox").is_empty() && project.files(".tidemill/claimed").is_empty());
    }
}

#[tokio::test]
async fn a_kept_file_runs_again_with_its_sidecar_when_it_has_changed() {
    let drop = Drop { on_success: Some(Afterwards::Keep), ..told() };
    let project =
        Project::new().file("inbox/energy-1.csv", "abc").file("inbox/energy-1.json", "{ \"n\": 1 }");
    let routes = vec![WorkflowRoute { drops: vec![drop], ..route("energy", "") }];
    let mut watching = open(&project, routes, &[]).await.unwrap();
    watching.put_away().await;
    fs::write(project.path("inbox/energy-1.csv"), "abcd").unwrap();
    watching.begun().await;
    assert_eq!(watching.begun().await.params["n"], 1);
    watching.put_away().await;
    let sidecar = watching.store.history(&RawPath::new("energy-1.json")).await.unwrap();
    assert_eq!(sidecar.len(), 2, "it went with its file twice");
    watching.finish().await;
    assert_eq!(project.files("inbox").len(), 2);
}
