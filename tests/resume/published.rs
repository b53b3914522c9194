//! A run whose process died between its last check and its end.

use tidemill::event::resumed::How;
use tidemill::event::said::Occasion;
use tidemill::event::state::RunState;
use tidemill::event::{Event, What};
use tidemill::run::conductor::Unfinished;
use tidemill::run::folder::RunFolder;
use tidemill::store::RunRow;
use tokio_util::sync::CancellationToken;

use crate::support::stage::{Played, Stage};

const FIELDS: &str = r#"sandbox = "none", prompt = "Do it.", repair = { attempts = 1 },
outputs = { ["output/a.txt"] = expect.text { min_words = 3 } },"#;
const SCRIPT: &str = r#"return test.script {
  test.call("write_file", { path = "output/a.txt", content = "short" }),
  test.say "done",
  test.call("write_file", { path = "output/a.txt", content = "one two three" }),
  test.say "mended",
}"#;

/// A stage whose runs go on later.
async fn stage(fields: &str) -> Stage {
    let mut stage = Stage::without_image(fields, SCRIPT).await;
    stage.conductor.unfinished = Unfinished::Waits;
    stage
}

/// The story to its end, and a second run of the same that was interrupted behind the first event that fits `last`.
async fn interrupted(last: impl Fn(&What) -> bool) -> (Stage, Played, RunRow) {
    let stage = stage(FIELDS).await;
    let whole = stage.play(None).await;
    assert_eq!(whole.state(), RunState::Succeeded, "{:?}", whole.row.report);
    let row = stage.queue(None).await;
    let at = whole.events.iter().position(|event| last(&event.what)).expect("such an event");
    // The first two stand already.
    for event in &whole.events[2..=at] {
        stage.store.append(&row.id, event.what.clone()).await.expect("an event");
    }
    (stage, whole, row)
}

fn passed(what: &What) -> bool {
    matches!(what, What::ChecksEnded { attempt: 1, .. })
}

fn count(events: &[Event], of: impl Fn(&What) -> bool) -> usize {
    events.iter().filter(|event| of(&event.what)).count()
}

fn hows(events: &[Event]) -> Vec<How> {
    let how = events.iter().filter_map(|event| match &event.what {
        What::Resumed { how, .. } => Some(*how),
        _ => None,
    });
    how.collect()
}

#[tokio::test]
async fn files_that_passed_are_published_without_a_sandbox() {
    let (stage, whole, row) = interrupted(passed).await;
    let folder = stage.conductor.project.state();
    let file = RunFolder::new(&folder, &row.id).artifacts(1).join("output/a.txt");
    stage.project.put(file, "one two three");
    let again = stage.conduct(&row, CancellationToken::new()).await;
    assert_eq!(again.state(), RunState::Succeeded, "{:?}", again.row.report);
    assert_eq!(hows(&again.events), [How::NoSandbox]);
    let started = |what: &What| matches!(what, What::SandboxStarted { .. });
    assert_eq!(count(&again.events, started), count(&whole.events, started));
    assert_eq!(count(&again.events, |what| matches!(what, What::Published { .. })), 1);
}

#[tokio::test]
async fn files_that_were_changed_since_are_taken_out_and_checked_again() {
    let (stage, whole, row) = interrupted(passed).await;
    let folder = stage.conductor.project.state();
    let file = RunFolder::new(&folder, &row.id).artifacts(1).join("output/a.txt");
    stage.project.put(file, "something quite other");
    let again = stage.conduct(&row, CancellationToken::new()).await;
    assert_eq!(again.state(), RunState::Succeeded, "{:?}", again.row.report);
    assert_eq!(hows(&again.events), [How::Checkpoint { turn: 3 }]);
    let folder = again.row.published.expect("a folder");
    let text = std::fs::read_to_string(stage.project.path(folder).join("a.txt")).expect("the artifact");
    assert_eq!(text, "one two three");
    assert_eq!(again.row.turns, whole.row.turns, "the model was asked again");
}

#[tokio::test]
async fn findings_are_told_once() {
    let found = |what: &What| matches!(what, What::ChecksEnded { attempt: 0, .. });
    let told = |what: &What| matches!(what, What::Said { occasion: Occasion::Findings, .. });
    for last in [found as fn(&What) -> bool, told] {
        let (stage, whole, row) = interrupted(last).await;
        let again = stage.conduct(&row, CancellationToken::new()).await;
        assert_eq!(again.state(), RunState::Succeeded, "{:?}", again.row.report);
        assert_eq!(count(&again.events, told), 1);
        assert_eq!(again.row.turns, whole.row.turns);
        assert_eq!(again.checks().len(), 2);
    }
}

/// At every point of the story it comes to the same end, with the model asked no more than it takes.
#[tokio::test]
async fn a_run_comes_to_its_end_from_any_point() {
    let stage = stage(FIELDS).await;
    let whole = stage.play(None).await;
    for cut in 2..whole.events.len() - 1 {
        let row = stage.queue(None).await;
        for event in &whole.events[2..cut] {
            stage.store.append(&row.id, event.what.clone()).await.expect("an event");
        }
        let again = stage.conduct(&row, CancellationToken::new()).await;
        let point = &whole.events[cut - 1].what;
        let told = |what: &What| matches!(what, What::Said { occasion: Occasion::Loss, .. });
        let is_kept = !matches!(point, What::ToolEnded { .. });
        assert_eq!(count(&again.events, told), usize::from(!is_kept), "after {point:?}");
        if !is_kept {
            // A model that reads no script would do its work again.
            continue;
        }
        assert_eq!(again.state(), RunState::Succeeded, "after {point:?}: {:?}", again.row.report);
        if matches!(point, What::Published { .. }) {
            continue;
        }
        let folder = again.row.published.expect("a folder");
        let text = std::fs::read_to_string(stage.project.path(folder).join("a.txt")).expect("the artifact");
        assert_eq!(text, "one two three", "after {point:?}");
    }
}

#[tokio::test]
async fn a_prompt_that_was_kept_elsewhere_is_read_again() {
    let fields = FIELDS.replace(r#"prompt = "Do it.""#, r#"prompt = ("long "):rep(20000)"#);
    let stage = stage(&fields).await;
    let whole = stage.play(None).await;
    let row = stage.queue(None).await;
    let at = whole.events.iter().position(|event| matches!(event.what, What::ModelResponded { .. }));
    for event in &whole.events[2..=at.expect("an answer")] {
        stage.store.append(&row.id, event.what.clone()).await.expect("an event");
    }
    let again = stage.conduct(&row, CancellationToken::new()).await;
    assert_eq!(again.state(), RunState::Succeeded, "{:?}", again.row.report);
    assert_eq!(again.row.turns, whole.row.turns);
    assert_eq!(count(&again.events, |what| matches!(what, What::PromptReady { .. })), 1);
}

#[tokio::test]
async fn a_run_that_nobody_comes_back_to_keeps_nothing() {
    let stage = Stage::without_image(FIELDS, SCRIPT).await;
    let whole = stage.play(None).await;
    assert_eq!(whole.state(), RunState::Succeeded, "{:?}", whole.row.report);
    assert_eq!(count(&whole.events, |what| matches!(what, What::Checkpointed { .. })), 0);
}
