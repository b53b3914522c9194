//! Whole runs on the real engine: each way a run can end, and what stands where afterwards.

use serde_json::json;
use tidemill::event::state::RunState;
use tidemill::event::{ToolOutcome, What};
use tokio_util::sync::CancellationToken;

use crate::support::stage::{Stage, exists};
use crate::support::wire::{Protocol, Reply, Wire};

const PROMPT: &str = r#"prompt = "Do it.","#;
const OUTPUT: &str = r#"outputs = { ["output/a.txt"] = expect.text { min_words = 3 } },"#;
const WRITE: &str = r#"test.shell "mkdir -p output && echo one two three > output/a.txt""#;

#[tokio::test]
async fn a_good_run_publishes_its_artifacts_with_a_receipt_and_leaves_no_container() {
    let fields = format!(
        r#"{OUTPUT}
        manifest = {{ ["input/data.csv"] = mill.input() }},
        prompt = function(run)
          local count = 0
          for _ in run.input:csv() do count = count + 1 end
          return ("%d rows in %s"):format(count, run.input.name)
        end,
        validate = function(artifacts, run) if artifacts["output/a.txt"]:text() == "" then return expect.fail("empty") end end,"#
    );
    let script = r#"return test.script {
      test.call("write_file", { path = "output/a.txt", content = "one two three four" }),
      test.call("read_file", { path = "input/data.csv", first_line = nil, lines = nil }),
      test.say "done",
    }"#;
    let stage = Stage::set(&fields, script).await;
    let played = stage.play(Some(("data.csv", b"a,b\n1,2\n3,4\n"))).await;
    assert_eq!(played.state(), RunState::Succeeded, "{:?}", played.row.report);
    let folder = played.row.published.clone().unwrap();
    assert_eq!(
        std::fs::read_to_string(stage.project.path(&folder).join("a.txt")).unwrap(),
        "one two three four"
    );
    let receipt = std::fs::read_to_string(stage.project.path(&folder).join("receipt.json")).unwrap();
    let receipt: serde_json::Value = serde_json::from_str(&receipt).unwrap();
    assert_eq!(receipt.pointer("/isolation/network").unwrap(), "none");
    assert_eq!(receipt.pointer("/isolation/read_only_root").unwrap(), true);
    let prompt = played.events.iter().find_map(|event| match &event.what {
        What::PromptReady { prompt, .. } => Some(prompt.preview()),
        _ => None,
    });
    assert_eq!(prompt, Some("2 rows in data.csv"));
    assert!(played.told()[1].contains("3,4"), "{:?}", played.told());
    assert!(!exists(played.container().unwrap()).await);
}

#[tokio::test]
async fn findings_go_back_to_the_agent_and_a_mended_file_is_published() {
    let fields = format!("{PROMPT}{OUTPUT} repair = {{ attempts = 1 }},");
    let script = format!(
        r#"return test.script {{ test.shell "mkdir -p output && echo one > output/a.txt", test.say "done", {WRITE}, test.say "mended" }}"#
    );
    let played = Stage::set(&fields, &script).await.play(None).await;
    assert_eq!(played.state(), RunState::Succeeded, "{:?}", played.row.report);
    let counts: Vec<usize> = played.checks().iter().map(|findings| findings.len()).collect();
    assert_eq!(counts, [1, 0]);
}

#[tokio::test]
async fn a_run_whose_checks_still_fail_is_rejected_and_its_files_are_kept_aside() {
    let fields = format!("{PROMPT}{OUTPUT} repair = {{ attempts = 1 }},");
    let script = r#"return test.script { test.shell "mkdir -p output && echo one > output/a.txt", test.say "done", test.say "no" }"#;
    let stage = Stage::set(&fields, script).await;
    let played = stage.play(None).await;
    assert_eq!(played.state(), RunState::Rejected);
    assert!(stage.project.files("outbox").is_empty(), "something was published");
    let kept = stage.project.files(format!(".tidemill/runs/{}/kept", played.row.id));
    assert!(kept.iter().any(|path| path.ends_with("a.txt")), "{kept:?}");
    assert!(kept.iter().any(|path| path.ends_with("findings.json")), "{kept:?}");
    assert!(played.report().message.contains("output/a.txt"), "{:?}", played.report());
}

#[tokio::test]
async fn what_is_not_a_regular_file_in_the_workspace_is_never_taken_out() {
    let fields = format!(
        r#"{PROMPT} outputs = {{
          ["output/link"] = expect.file {{}}, ["output/pipe"] = expect.file {{}}, ["output/folder"] = expect.file {{}},
          ["output/giant"] = expect.file {{}}, ["behind/passwd"] = expect.file {{}}, ["output/missing"] = expect.file {{}},
        }},"#
    );
    let script = r#"return test.script {
      test.shell "mkdir -p output/folder && ln -s /etc/passwd output/link && ln -s /etc behind && mkfifo output/pipe && truncate -s 10G output/giant && for i in $(seq 2000); do : > output/many-$i; done",
      test.say "done",
    }"#;
    let stage = Stage::set(&fields, script).await;
    let played = stage.play(None).await;
    assert_eq!(played.state(), RunState::Rejected, "{:?}", played.row.report);
    let said: Vec<String> = played.checks()[0].iter().map(ToString::to_string).collect();
    for (path, why) in [
        ("output/link", "is a link"),
        ("output/pipe", "is not a regular file"),
        ("output/folder", "is a folder"),
        ("output/giant", "has 10.7 GB"),
        ("behind/passwd", "lies behind the link `behind`"),
        ("output/missing", ""),
    ] {
        assert!(said.iter().any(|line| line.contains(path) && line.contains(why)), "{path}: {said:#?}");
    }
}

#[tokio::test]
async fn an_input_guard_denies_before_anything_is_started() {
    let fields = format!("{PROMPT}{OUTPUT} guardrails = {{ guard.input_size {{ max = 4 }} }},");
    let played = Stage::set(&fields, "return test.script {}").await.play(Some(("big.csv", b"12345"))).await;
    assert_eq!(played.state(), RunState::Denied);
    assert_eq!(played.container(), None);
}

#[tokio::test]
async fn a_denied_command_is_told_to_the_model_which_may_go_on() {
    let fields = format!("{PROMPT}{OUTPUT} guardrails = {{ guard.commands {{ deny = {{ \"curl *\" }} }} }},");
    let script =
        format!(r#"return test.script {{ test.shell "true; curl http://x", {WRITE}, test.say "done" }}"#);
    let played = Stage::set(&fields, &script).await.play(None).await;
    assert_eq!(played.state(), RunState::Succeeded, "{:?}", played.row.report);
    assert!(played.told()[0].starts_with("Denied by guardrail `commands`"), "{:?}", played.told());
}

#[tokio::test]
async fn a_model_that_only_tries_what_is_denied_ends_denied() {
    let guard =
        r#"{ on = "tool_call", name = "never", check = function() return guard.deny("no tools today") end }"#;
    let fields = format!("{PROMPT}{OUTPUT} guardrails = {{ {guard} }},");
    let script = r#"return function() return test.shell "true" end"#;
    let played = Stage::set(&fields, script).await.play(None).await;
    assert_eq!(played.state(), RunState::Denied, "{:?}", played.row.report);
    assert!(played.report().message.contains("no tools today"), "{:?}", played.report());
}

#[tokio::test]
async fn at_the_turn_limit_the_model_closes_without_tools_and_partial_files_are_kept() {
    let fields = format!("{PROMPT}{OUTPUT}");
    let script = r#"return function(turn) if turn == 9 then return test.say "got half of it" end
      return test.shell "mkdir -p output && echo half done now >> output/a.txt" end"#;
    let stage = Stage::set(&fields, script).await;
    let played = stage.play(None).await;
    assert_eq!(played.state(), RunState::Exhausted, "{:?}", played.row.report);
    let last = played.events.iter().rev().find_map(|event| match &event.what {
        What::ModelResponded { text, calls, .. } => Some((text.preview().to_owned(), calls.len())),
        _ => None,
    });
    assert_eq!(last, Some(("got half of it".to_owned(), 0)));
    let kept = stage.project.files(format!(".tidemill/runs/{}/kept", played.row.id));
    assert!(kept.iter().any(|path| path.ends_with("a.txt")), "{kept:?}");
}

#[tokio::test]
async fn a_mistake_in_a_hook_ends_the_run_with_the_line_underlined() {
    let fields = format!("{OUTPUT} prompt = function(run) return run.input.nope.nope end,");
    let played = Stage::set(&fields, "return test.script {}").await.play(Some(("a.csv", b"a\n1\n"))).await;
    assert_eq!(played.state(), RunState::Failed);
    let place = played.report().place.clone().unwrap();
    assert_eq!(place.file, "workflows/story.lua");
    assert!(place.line > 1, "{place:?}");
}

#[tokio::test]
async fn a_model_that_misuses_its_tools_is_told_exactly_how() {
    let fields = format!("{PROMPT}{OUTPUT}");
    let script = format!(
        r#"return test.script {{
          test.call("no_such_tool", {{}}), test.call("shell", {{ cmd = "x" }}), test.call("read_file", {{ path = "../../etc/passwd" }}),
          {WRITE}, test.say "done" }}"#
    );
    let played = Stage::set(&fields, &script).await.play(None).await;
    assert_eq!(played.state(), RunState::Succeeded, "{:?}", played.row.report);
    let told = played.told();
    assert!(
        told[0].contains("There is no tool `no_such_tool`") && told[0].contains("`read_file`"),
        "{}",
        told[0]
    );
    assert!(told[1].contains("do not fit"), "{}", told[1]);
    assert!(told[2].contains("leaves the workspace"), "{}", told[2]);
}

#[tokio::test]
async fn a_container_removed_from_outside_ends_the_run_and_says_so() {
    let fields = format!("{PROMPT}{OUTPUT}");
    let stage =
        Stage::set(&fields, r#"return test.script { test.shell "sleep 300", test.say "done" }"#).await;
    let mut events = stage.store.follow();
    let row = stage.queue(None).await;
    let vandal = tokio::spawn(async move {
        let mut container = String::new();
        while let Ok(event) = events.recv().await {
            match event.what {
                What::SandboxStarted { container: id, .. } => container = id,
                What::ToolStarted { .. } => break,
                _ => {}
            }
        }
        let removed = tokio::process::Command::new("docker").args(["rm", "-f", &container]).output().await;
        assert!(removed.unwrap().status.success());
    });
    let played = stage.conduct(&row, CancellationToken::new()).await;
    vandal.await.unwrap();
    assert_eq!(played.state(), RunState::Failed);
    assert_eq!(played.report().code, "sandbox::gone", "{:?}", played.report());
}

#[tokio::test]
async fn a_stop_in_the_middle_of_a_command_cancels_cleanly() {
    let fields = format!("{PROMPT}{OUTPUT}");
    let stage =
        Stage::set(&fields, r#"return test.script { test.shell "sleep 300", test.say "done" }"#).await;
    let mut events = stage.store.follow();
    let row = stage.queue(None).await;
    let stop = CancellationToken::new();
    let stopper = stop.clone();
    tokio::spawn(async move {
        while let Ok(event) = events.recv().await {
            if matches!(event.what, What::ToolStarted { .. }) {
                return stopper.cancel();
            }
        }
    });
    let played = stage.conduct(&row, stop).await;
    assert_eq!(played.state(), RunState::Cancelled);
    let outcomes = played.events.iter().filter_map(|event| match &event.what {
        What::ToolEnded { outcome, .. } => Some(*outcome),
        _ => None,
    });
    assert_eq!(outcomes.collect::<Vec<_>>(), [ToolOutcome::Stopped], "it had time left");
    assert!(!exists(played.container().unwrap()).await, "the container is still there");
}

/// The same story told over the wire, in both protocols: every call answered once and in order, which the double checks.
#[tokio::test]
async fn a_model_behind_http_works_and_its_tokens_are_paid_for() {
    for (protocol, provider) in [(Protocol::Responses, "openai"), (Protocol::Chat, "openai-chat")] {
        let wire = Wire::start(protocol).await;
        wire.reply(Reply::calls([
            ("shell", json!({ "command": "mkdir -p output", "timeout_seconds": null })),
            ("write_file", json!({ "path": "output/a.txt", "content": "one two three" })),
        ]));
        wire.reply(Reply::text("done"));
        let models = format!(
            "[models.actor]\nprovider = \"{provider}\"\nbase_url = \"{}\"\nprice = {{ input = 1.0, output = 2.0 }}\n",
            wire.base_url()
        );
        let fields = format!("{PROMPT}{OUTPUT} limits = {{ cost_usd = 1.0, tokens = 200000 }},");
        let played = Stage::with_models(&fields, &models, "").await.play(None).await;
        assert_eq!(played.state(), RunState::Succeeded, "{provider}: {:?}", played.row.report);
        assert_eq!(wire.complaints(), Vec::<String>::new(), "{provider}");
        assert_eq!(wire.requests().len(), 2, "{provider}");
        assert!(
            played.row.usage.total() > 0 && played.row.cost.is_some_and(|cost| cost.usd() > 0.0),
            "{provider}"
        );
    }
}

#[tokio::test]
async fn a_dollar_limit_that_leaves_no_room_for_a_call_ends_the_run_before_it_is_made() {
    let wire = Wire::start(Protocol::Chat).await;
    let models = format!(
        "[models.actor]\nprovider = \"openai-chat\"\nbase_url = \"{}\"\nprice = {{ input = 1000.0, output = 1000.0 }}\n",
        wire.base_url()
    );
    let fields = format!("{PROMPT}{OUTPUT} limits = {{ cost_usd = 0.01 }},");
    let played = Stage::with_models(&fields, &models, "").await.play(None).await;
    assert_eq!(played.state(), RunState::Exhausted, "{:?}", played.row.report);
    assert!(wire.requests().is_empty(), "a call was made that the budget does not cover");
}

#[tokio::test]
async fn a_local_sandbox_runs_the_same_story_and_says_what_it_does_not_hold() {
    let fields = format!(
        r#"{PROMPT}{OUTPUT} sandbox = "local",
        manifest = {{ ["input/data.csv"] = mill.input() }},
        environment = {{ GREETING = "hello" }},"#
    );
    let script = r#"return test.script {
      test.shell "mkdir -p output && echo $GREETING $(cat input/data.csv) there > output/a.txt; ls -A /home /root; touch /usr/x",
      test.say "done",
    }"#;
    let stage = Stage::without_image(&fields, script).await;
    let played = stage.play(Some(("data.csv", b"a,b\n"))).await;
    assert_eq!(played.state(), RunState::Succeeded, "{:?}", played.row.report);
    let folder = stage.project.path(played.row.published.clone().unwrap());
    assert_eq!(std::fs::read_to_string(folder.join("a.txt")).unwrap(), "hello a,b there\n");
    let told = played.told().join("\n");
    assert!(told.contains("/root") && told.contains("No such file") && told.contains("Read-only"), "{told}");
    let receipt = std::fs::read_to_string(folder.join("receipt.json")).unwrap();
    let receipt: serde_json::Value = serde_json::from_str(&receipt).unwrap();
    let weaker = receipt.pointer("/isolation/weaker/0").unwrap();
    assert!(weaker.as_str().unwrap().contains("system calls"), "{weaker}");
    assert!(stage.project.files(".tidemill/local").is_empty(), "its folder is gone");
}

#[tokio::test]
async fn without_a_sandbox_there_are_files_and_no_commands() {
    let fields = format!(
        r#"{PROMPT}{OUTPUT} sandbox = "none",
        manifest = {{ ["input/data.csv"] = mill.input() }},"#
    );
    let script = r#"return test.script {
      test.shell "echo no > output/a.txt",
      test.call("read_file", { path = "input/data.csv", first_line = nil, lines = nil }),
      test.call("write_file", { path = "input/data.csv", content = "mine" }),
      test.call("write_file", { path = "output/a.txt", content = "one two three" }),
      test.say "done",
    }"#;
    let stage = Stage::without_image(&fields, script).await;
    let played = stage.play(Some(("data.csv", b"a,b\n"))).await;
    assert_eq!(played.state(), RunState::Succeeded, "{:?}", played.row.report);
    let told = played.told();
    assert!(told[0].contains("There is no tool `shell`"), "{told:?}");
    assert!(told[1].contains("a,b") && told[2].contains("is read-only"), "{told:?}");
    let folder = stage.project.path(played.row.published.clone().unwrap());
    assert_eq!(std::fs::read_to_string(folder.join("a.txt")).unwrap(), "one two three");
    assert!(stage.project.files(".tidemill/none").is_empty(), "its folder is gone");
}
