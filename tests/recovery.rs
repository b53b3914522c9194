//! Runs that a dead process left behind: they start over cleanly, are never published twice, and always end.

use tidemill::artifact::{self, Destination};
use tidemill::event::What;
use tidemill::event::id::RunId;
use tidemill::event::state::RunState;
use tidemill::run::folder::RunFolder;
use tidemill::run::queue::Conduct as _;
use tidemill::run::{abandoned, ended};
use tidemill::store::{Lease, RunRow};
use tokio_util::sync::CancellationToken;

use crate::support::stage::Stage;

const FIELDS: &str = r#"prompt = "Do it.", outputs = { ["output/a.txt"] = expect.text { min_words = 1 } },"#;
const SCRIPT: &str =
    r#"return test.script { test.shell "mkdir -p output && echo new > output/a.txt", test.say "done" }"#;

#[tokio::test]
async fn what_an_earlier_attempt_took_out_is_no_obstacle() {
    let stage = Stage::set(FIELDS, SCRIPT).await;
    let row = stage.queue(None).await;
    stage.project.put(format!(".tidemill/runs/{}/artifacts/0/output/a.txt", row.id), "old");
    let played = stage.conduct(&row, CancellationToken::new()).await;
    assert_eq!(played.state(), RunState::Succeeded, "{:?}", played.row.report);
    let folder = played.row.published.expect("a folder in the outbox");
    let text = std::fs::read_to_string(stage.project.path(folder).join("a.txt")).expect("the artifact");
    assert_eq!(text.trim(), "new");
}

#[tokio::test]
async fn what_a_run_published_is_found_again_by_its_run() {
    let stage = Stage::set(FIELDS, SCRIPT).await;
    let played = stage.play(None).await;
    let outbox = stage.project.path("outbox");
    let destination = Destination::of(outbox, "story", &played.row.inputs, &played.row.id);
    let there = artifact::published_before(&destination, &played.row.id).expect("what was published");
    let said =
        played.events.iter().find(|event| matches!(event.what, What::Published { .. })).expect("the event");
    assert_eq!(there.event(stage.project.root()), said.what);
    let other = RunId::parse("20260101-000000-zzzz").expect("an id");
    assert_eq!(
        artifact::published_before(&destination, &other),
        None,
        "another run's folder was taken for its own"
    );
}

#[tokio::test]
async fn a_run_started_by_hand_is_ended_when_its_process_is_gone_and_not_before() {
    let stage = Stage::set(FIELDS, SCRIPT).await;
    let project = &stage.conductor.project;
    let row = stage.queue(None).await;
    let hold = abandoned::hold(&RunFolder::new(&project.state(), &row.id)).expect("the lock");
    assert_eq!(abandoned::bury(project, &stage.store).await.expect("a store"), 0, "its process lives");
    drop(hold);
    assert_eq!(abandoned::bury(project, &stage.store).await.expect("a store"), 1);
    let row = stage.store.run(&row.id).await.expect("a store").expect("the run");
    assert_eq!((row.state, row.report.expect("why").code.as_str()), (RunState::Failed, "run::interrupted"));
}

#[tokio::test]
async fn who_lost_a_run_publishes_nothing_and_leaves_its_files_alone() {
    let fields = "sandbox = \"none\", prompt = \"Do it.\",";
    let stage = Stage::without_image(fields, "return test.script { test.say \"done\" }").await;
    let row = stage.queue(Some(("a.csv", b"abc"))).await;
    let old = RunRow { fence: row.fence + 1, ..row.clone() };
    let lost = stage.conductor.conduct(&old, CancellationToken::new()).await.expect_err("it is another's");
    assert_eq!(lost.code(), Lease::LOST);
    assert_eq!(stage.store.all_events(&row.id).await.expect("events").len(), 2);
    assert!(stage.project.files("outbox").is_empty());
    assert!(RunFolder::new(&stage.conductor.project.state(), &row.id).input(0).exists());
    // Whoever has it goes on from there.
    assert_eq!(stage.conduct(&row, CancellationToken::new()).await.state(), RunState::Succeeded);
}

#[tokio::test]
async fn what_a_killed_process_left_of_an_ended_run_is_tidied_up_and_what_works_is_left_alone() {
    let stage = Stage::set(FIELDS, SCRIPT).await;
    let project = &stage.conductor.project;
    let ended = stage.play(None).await.row;
    let works = stage.queue(None).await;
    for row in [&ended, &works] {
        stage.project.put(format!(".tidemill/runs/{}/input/0", row.id), "x");
    }
    stage.project.put(format!(".tidemill/runs/{}/kept/a.txt", ended.id), "kept");
    assert_eq!(ended::tidy(project, &stage.store).await.expect("a store"), 1);
    let left = stage.project.files(".tidemill/runs");
    let mut expected = [format!("{}/kept/a.txt", ended.id), format!("{}/input/0", works.id)];
    // Ids of one second are in no order.
    expected.sort();
    assert_eq!(left, expected.map(std::path::PathBuf::from));
}

#[tokio::test]
async fn the_empty_folder_of_an_ended_run_goes() {
    let stage = Stage::set(FIELDS, SCRIPT).await;
    let project = &stage.conductor.project;
    let run = stage.play(None).await.row.id;
    // All but its last step had been taken when the process was killed.
    let folder = stage.project.path(format!(".tidemill/runs/{run}"));
    std::fs::create_dir_all(&folder).expect("a folder");
    assert_eq!(ended::tidy(project, &stage.store).await.expect("a store"), 1);
    assert!(!folder.exists());
}

#[tokio::test]
async fn a_guard_with_a_mistake_in_it_ends_the_run_with_its_line() {
    let guard = r#"{ on = "tool_call", name = "broken", check = function(call) return call.nope.nope end }"#;
    let stage = Stage::set(&format!("{FIELDS} guardrails = {{ {guard} }},"), SCRIPT).await;
    let played = stage.play(None).await;
    assert_eq!(played.state(), RunState::Failed);
    let place = played.report().place.as_ref().expect("a place in the script");
    assert_eq!(place.file, "workflows/story.lua");
    assert!(place.text.as_ref().is_some_and(|text| text.contains("call.nope")), "{place:?}");
}
