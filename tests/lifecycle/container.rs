//! Containers that people pause, images they remove, and memory that runs out.

use tidemill::event::state::RunState;
use tidemill::sandbox::{Engine as _, Stdio};

use super::{command, docker, engine_behind, exists, sandbox_of, text};
use crate::support::engine::{engine, run_id, small_image, small_limits, spec};
use crate::support::stage::Stage;
use crate::support::way::Way;

#[tokio::test]
async fn a_paused_container_goes_on_when_it_is_let() {
    let way = Way::open();
    let engine = engine_behind(&way).await;
    let sandbox = sandbox_of(&engine).await;
    docker(&["pause", sandbox.id()]).await;
    let asked = sandbox.start(&command(&["echo", "later"]), Stdio::Pipes).await.unwrap();
    // The stream breaks while it is paused: the new one is waited for as well.
    way.cut();
    way.mend();
    docker(&["unpause", sandbox.id()]).await;
    assert_eq!(text(&asked.finish().await.unwrap()), "later\n");
    sandbox.remove().await.unwrap();
}

#[tokio::test]
async fn a_paused_container_is_removed_all_the_same() {
    let engine = engine().await;
    let sandbox = sandbox_of(&engine).await;
    docker(&["pause", sandbox.id()]).await;
    sandbox.remove().await.unwrap();
    assert!(!exists(sandbox.id()).await);
}

#[tokio::test]
async fn an_image_that_was_removed_meanwhile_is_named() {
    let mut image = small_image().await;
    image.digest = format!("sha256:{}", "0".repeat(64));
    let started = engine().await.start(&run_id(), &image, &spec(small_limits())).await;
    assert_eq!(started.unwrap_err().code(), "sandbox::image_gone");
}

#[tokio::test]
async fn the_agent_is_told_that_memory_ran_out() {
    let fields = r#"prompt = "Do it.", limits = { memory = "256MB", disk = "64MB" },
        outputs = { ["output/a.txt"] = expect.text { min_words = 1 } },"#;
    let script = r#"return test.script {
        test.shell "python3 -c 'x = bytearray(1 << 30)'",
        test.shell "mkdir -p output && echo fine > output/a.txt",
        test.say "done",
    }"#;
    let played = Stage::set(fields, script).await.play(None).await;
    assert_eq!(played.state(), RunState::Succeeded, "{:?}", played.row.report);
    let told = played.told();
    let expected = "killed: out of memory (limits.memory is 256.0 MB";
    assert!(told[0].contains(expected), "{}", told[0]);
    assert!(!told[1].contains("out of memory"), "{}", told[1]);
}
