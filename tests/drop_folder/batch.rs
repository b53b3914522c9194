//! Many files, one run.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use tidemill::event::input::{InputChange, RawPath};
use tidemill::event::state::{InputState, RunState};
use tidemill::run::intake::WorkflowRoute;
use tidemill::store::{RunFilter, Store};
use tidemill::workflow::trigger::{Afterwards, Batch, By, Drop};

use super::crash::version;
use super::harness::{Act, open};
use super::{Inbox, SETTLE, route};
use crate::support::project::Project;

fn contracts() -> Drop {
    let require = ["*.txt", "meta.json"].map(str::to_owned).to_vec();
    let batch = Batch { by: By::Folder, require, quiet: None, max: None, timeout: None };
    Drop {
        batch: Some(batch),
        on_success: Some(Afterwards::Move("archive/{case}".to_owned())),
        on_failure: Some(Afterwards::Move("rejected/{case}".to_owned())),
        ..Drop::new("contracts/{case}/*")
    }
}

fn routes(drop: Drop) -> Vec<WorkflowRoute> {
    vec![WorkflowRoute { drops: vec![drop], ..route("energy", "") }]
}

#[tokio::test]
async fn a_folder_is_one_run_when_all_of_it_is_there() {
    let project = Project::new().file("inbox/contracts/42/b.txt", "b");
    let mut inbox = Inbox::dropping(project, contracts()).await;
    assert_eq!(inbox.settle().await, 0);
    let missing = "`meta.json` is missing (`batch.require` of energy)";
    assert_eq!(inbox.standing("contracts/42/b.txt").await, (InputState::Incomplete, missing.to_owned()));
    inbox.project.put("inbox/contracts/42/meta.json", "{}");
    inbox.tick().await;
    inbox.project.put("inbox/contracts/42/a.txt", "a");
    assert_eq!(inbox.after(SETTLE * 3 / 4).await, 0);
    assert_eq!(inbox.after(SETTLE * 3 / 4).await, 0, "a late one is waited for");
    assert_eq!(inbox.after(SETTLE / 2).await, 1);
    let run = inbox.runs().await.remove(0);
    let names: Vec<String> = run.inputs.iter().map(|file| file.path.display()).collect();
    assert_eq!(names, ["contracts/42/a.txt", "contracts/42/b.txt", "contracts/42/meta.json"]);
    assert_eq!(run.params["case"], "42");
    let files = inbox.store.claimed_files(&run).await.unwrap();
    let contents: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    assert_eq!(contents, [&b"a"[..], b"b", b"{}"]);
    // What comes after the claim begins a new batch.
    inbox.project.put("inbox/contracts/42/c.txt", "c");
    assert_eq!(inbox.settle().await, 0);
    assert_eq!(inbox.standing("contracts/42/c.txt").await.0, InputState::Incomplete);
}

#[tokio::test]
async fn a_batch_is_put_away_together_where_its_drop_says() {
    for (end, folder) in [(RunState::Succeeded, "archive/42"), (RunState::Rejected, "rejected/42")] {
        let project =
            Project::new().file("inbox/contracts/42/a.txt", "a").file("inbox/contracts/42/meta.json", "{}");
        let mut watching = open(&project, routes(contracts()), &[Act::End(end)]).await.unwrap();
        watching.put_away().await;
        watching.put_away().await;
        watching.finish().await;
        let files: BTreeSet<_> = project.files(folder).into_iter().collect();
        assert!(files.contains(Path::new("a.txt")) && files.contains(Path::new("meta.json")), "{files:?}");
        // One reason for all of it.
        let reasons = files.iter().filter(|path| path.to_string_lossy().ends_with(".reason.txt")).count();
        assert_eq!(reasons, usize::from(end == RunState::Rejected));
        assert!(project.files(".tidemill/claimed").is_empty());
    }
}

#[tokio::test]
async fn a_batch_is_claimed_as_a_whole_or_not_at_all() {
    let project =
        Project::new().file("inbox/contracts/42/a.txt", "a").file("inbox/contracts/42/meta.json", "{}");
    let mut inbox = Inbox::dropping(project, contracts()).await;
    inbox.tick().await;
    let scan = {
        inbox.clock.advance(SETTLE);
        inbox.look()
    };
    // After the look, before the claim.
    inbox.project.put("inbox/contracts/42/meta.json", "{ }");
    assert_eq!(inbox.desk.tick(&scan).await.unwrap(), 0);
    assert_eq!(inbox.project.files("inbox").len(), 2);
    assert!(inbox.project.files(".tidemill/claimed").is_empty());
    let (state, reason) = inbox.standing("contracts/42/a.txt").await;
    assert_eq!(state, InputState::Settling);
    assert!(reason.contains("`contracts/42/meta.json`, which goes with it: it changed"), "{reason}");
    assert_eq!(inbox.settle().await, 1);
}

#[tokio::test]
async fn a_crash_between_the_moves_of_a_batch_loses_nothing() {
    let project = Project::new();
    let store = Store::open(&project.path(".tidemill")).await.unwrap();
    let mut changes = Vec::new();
    for name in ["contracts/42/a.txt", "contracts/42/meta.json"] {
        project.put(Path::new("inbox").join(name), "{}");
        changes.push(InputChange {
            path: RawPath::new(name),
            fingerprint: version(&project.path("inbox").join(name)),
            state: InputState::Ready,
            reason: None,
        });
    }
    let taken = store.ready(&changes).await.unwrap();
    let to = project.path(".tidemill").join(&taken[0].claimed_path);
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::rename(project.path("inbox/contracts/42/a.txt"), to).unwrap();
    store.close().await;
    let mut watching = open(&project, routes(contracts()), &[]).await.unwrap();
    watching.put_away().await;
    watching.put_away().await;
    let store = watching.store.clone();
    watching.finish().await;
    assert_eq!(store.runs(&RunFilter::default()).await.unwrap().len(), 1);
    assert_eq!(project.files("archive/42").len(), 2);
}

#[tokio::test]
async fn a_batch_that_stays_incomplete_is_given_up_and_told_once() {
    let mut drop = contracts();
    if let Some(batch) = &mut drop.batch {
        batch.timeout = Some(Duration::from_mins(1));
    }
    let mut inbox = Inbox::dropping(Project::new().file("inbox/contracts/42/a.txt", "a"), drop).await;
    inbox.settle().await;
    inbox.after(Duration::from_mins(1)).await;
    let (state, reason) = inbox.standing("contracts/42/a.txt").await;
    assert_eq!(state, InputState::Incomplete);
    assert!(reason.contains("given up after 1 m 00 s (`batch.timeout`)"), "{reason}");
    assert!(inbox.desk.due().is_none(), "it is not looked for any more");
    inbox.project.put("inbox/contracts/42/meta.json", "{}");
    assert_eq!(inbox.settle().await, 1, "what changes begins anew");
}

#[tokio::test]
async fn a_file_of_a_batch_and_of_another_workflow_is_claimed_once() {
    let project =
        Project::new().file("inbox/contracts/42/a.txt", "a").file("inbox/contracts/42/meta.json", "{}");
    let mut routes = routes(contracts());
    routes.push(route("each", "**/*.txt"));
    let mut inbox = Inbox::open(project, routes).await;
    assert_eq!(inbox.settle().await, 2);
    let runs = inbox.runs().await;
    let inputs: BTreeSet<(String, usize)> =
        runs.iter().map(|run| (run.workflow.clone(), run.inputs.len())).collect();
    assert_eq!(inputs, BTreeSet::from([("each".to_owned(), 1), ("energy".to_owned(), 2)]));
}
