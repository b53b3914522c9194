//! The same on the real engine: what the agent finds, and what it may do with it.

use bytes::Bytes;
use tidemill::event::What;
use tidemill::event::id::Digest;
use tidemill::event::state::RunState;
use tidemill::sandbox::{Body, Placement};
use tidemill::workflow::manifest::Access;
use tidemill::workflow::mode::Mode;
use tidemill::workflow::path::WorkspacePath;
use tokio_util::sync::CancellationToken;

use crate::support::engine::{everywhere, sandboxed, small_limits};
use crate::support::stage::Stage;
use crate::support::web::Web;

fn given(path: &str, text: &str, access: Access) -> Placement {
    let body = Body::Bytes(Bytes::copy_from_slice(text.as_bytes()));
    Placement::new(WorkspacePath::parse(path).unwrap(), body, access)
}

#[tokio::test]
async fn the_agent_reads_its_input_runs_its_tools_and_sees_its_variables() {
    let fields = r#"
        manifest = {
          ["input/data.csv"] = mill.input(),
          ["own/data.csv"] = mill.input { access = "rw" },
          ["notes/todo.md"] = mill.text("one\n", { access = "rw" }),
          ["tools/"] = mill.dir "tools",
          ["key"] = mill.bytes("\0\1\2", { access = "rw", mode = "0600" }),
        },
        environment = { MAX_ROWS = "12", GREETING = "two words\nand a line", LANG = "C" },
        prompt = "Do it.",
        outputs = { ["output/out.txt"] = expect.text {} },"#;
    let script = r#"return test.script {
        test.shell [[
          for try in "echo x >> input/data.csv" "rm -f input/data.csv" "mv input/data.csv y" "mv input z" \
                     "rm -rf tools" "echo x > tools/run.sh"; do
            sh -c "$try" 2>/dev/null && echo "could: $try"
          done
          echo two >> notes/todo.md && cat notes/todo.md
          echo 1,2 >> own/data.csv && cat own/data.csv
          ./tools/run.sh
          stat -c "%n %a %u" key input/data.csv tools/run.sh
          echo "$MAX_ROWS|$GREETING|$LANG"
          mkdir -p output && cp input/data.csv output/out.txt
        ]],
        test.say "done",
      }"#;
    let stage = Stage::set(fields, script).await;
    stage.project.put("tools/run.sh", "#!/bin/sh\necho ran\n");
    let rights = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(stage.project.path("tools/run.sh"), rights).unwrap();
    let played = stage.play(Some(("data.csv", b"a,b\n"))).await;
    assert_eq!(played.state(), RunState::Succeeded, "{:?}", played.row.report);
    let told = played.told()[0];
    let expected = "one\ntwo\na,b\n1,2\nran\nkey 600 1000\ninput/data.csv 444 0\ntools/run.sh 555 0\n12|two words\nand a line|C\n";
    assert!(told.contains(expected), "{told}");
    assert!(!told.contains("could:"), "{told}");

    let entries = played.events.iter().find_map(|event| match &event.what {
        What::WorkspaceFilled { files: 5, entries, .. } => Some(entries),
        _ => None,
    });
    let entries = entries.unwrap();
    let input = entries.iter().find(|entry| entry.path == "input/data.csv").unwrap();
    assert_eq!(input.sha256, Digest::of("a,b\n"));
    let folder = played.row.published.clone().unwrap();
    let receipt = std::fs::read(stage.project.path(folder).join("receipt.json")).unwrap();
    let receipt: serde_json::Value = serde_json::from_slice(&receipt).unwrap();
    assert_eq!(receipt["manifest"], serde_json::to_value(entries).unwrap());
}

#[tokio::test]
async fn a_run_whose_content_cannot_be_had_starts_no_container() {
    let fields = r#"manifest = { ["in/"] = mill.artifacts "never" }, prompt = "x","#;
    let stage = Stage::set(fields, r#"return test.script { test.say "done" }"#).await;
    let played = stage.play(None).await;
    assert_eq!(played.state(), RunState::Failed);
    assert_eq!(played.report().code, "manifest::no_run");
    assert_eq!(played.container(), None);
}

#[tokio::test]
async fn a_run_that_is_stopped_while_it_fetches_ends_at_once() {
    let web = Web::start().await;
    let url = web.never("/x");
    let fields = format!(
        r#"manifest = {{ ["x"] = mill.url("{url}", {{ sha256 = "{}" }}) }}, prompt = "x","#,
        Digest::of("x")
    );
    let stage = Stage::set(&fields, r#"return test.script { test.say "done" }"#).await;
    let row = stage.queue(None).await;
    let stop = CancellationToken::new();
    let (played, ()) = tokio::join!(stage.conduct(&row, stop.clone()), async {
        web.is_asked().await;
        stop.cancel();
    });
    assert_eq!(played.state(), RunState::Cancelled);
    assert_eq!(played.container(), None);
    assert_eq!(stage.project.files(".tidemill/cache").len(), 0);
}

#[tokio::test]
async fn what_stands_there_unchanged_is_not_sent_again() {
    sandboxed(small_limits(), |sandbox| async move {
        let all = || {
            vec![
                given("input/a.csv", "aaaa", Access::ReadOnly),
                given("input/b.csv", "bb", Access::ReadOnly),
                given("own.txt", "mine", Access::ReadWrite),
            ]
        };
        let first = sandbox.put(all()).await.unwrap();
        assert_eq!((first.files, first.bytes, first.unchanged), (3, 10, 0));
        // What the agent may change is sent again: nobody knows what it is by now.
        let second = sandbox.put(all()).await.unwrap();
        assert_eq!((second.files, second.bytes, second.unchanged), (1, 4, 2));
        // Another content or mode is no longer the same, and read-only stays read-only.
        let refused = sandbox.put(vec![given("input/a.csv", "other", Access::ReadOnly)]).await;
        assert!(refused.is_err());
        let mut program = given("input/b.csv", "bb", Access::ReadOnly);
        program.mode = Some(Mode::PROGRAM);
        assert!(sandbox.put(vec![program]).await.is_err());
    })
    .await;
}

#[tokio::test]
async fn a_file_that_changes_while_it_is_placed_is_refused() {
    everywhere(small_limits(), |sandbox| async move {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        std::fs::write(&file, "now").unwrap();
        for access in [Access::ReadOnly, Access::ReadWrite] {
            let mut placement = given("a", "", access);
            placement.body = Body::File(file.clone());
            placement.digest = Some(Digest::of("before"));
            let refused = sandbox.put(vec![placement]).await.unwrap_err();
            assert!(format!("{refused:?}").contains("changed while it was read"), "{refused:?}");
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "now");
    })
    .await;
}
