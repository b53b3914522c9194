//! The engine away for a while, away for good, and frozen.

use bytes::Bytes;
use tidemill::sandbox::helper::Next;
use tidemill::sandbox::{Body, Caps, Engine as _, Placement, Silent, Stdio};
use tidemill::workflow::image::Image;
use tidemill::workflow::manifest::Access;
use tidemill::workflow::path::WorkspacePath;

use super::{code, command, docker, engine_behind, exists, sandbox_of, text};
use crate::support::engine::{run_id, small_image, small_limits, spec};
use crate::support::way::Way;

/// What a command prints before and after it was told to go on.
const LINES: usize = 20_000;

#[tokio::test]
async fn a_command_goes_on_while_the_engine_is_away_and_its_output_is_whole() {
    let way = Way::open();
    let engine = engine_behind(&way).await;
    let sandbox = sandbox_of(&engine).await;
    let program = format!(
        "print('begun', flush=True)\nimport os, time\nwhile not os.path.exists('go'): time.sleep(0.01)\n\
         for number in range({LINES}): print(number)\nopen('printed', 'w')"
    );
    let mut process = sandbox.start(&command(&["python3", "-c", &program]), Stdio::Pipes).await.unwrap();
    let mut begun = Vec::new();
    while !begun.ends_with(b"\n") {
        match process.next().await.unwrap() {
            Next::Output(bytes) => begun.extend_from_slice(&bytes),
            other => panic!("{other:?}"),
        }
    }
    way.cut();
    let in_it = ["exec", sandbox.id(), "sh", "-c"];
    docker(
        &[&in_it[..], &["touch /workspace/go; until test -e /workspace/printed; do sleep 0.01; done"]]
            .concat(),
    )
    .await;
    way.mend();
    let done = process.finish().await.unwrap();
    assert_eq!((done.exit, done.output.lines), (Some(0), LINES as u64), "all of it, and none of it twice");
    let whole = std::fs::read_to_string(done.output.whole.unwrap()).unwrap();
    assert!(whole.lines().eq((0..LINES).map(|number| number.to_string())));
    assert_eq!(text(&sandbox.exec(&command(&["echo", "alive"])).await.unwrap()), "alive\n");
    sandbox.remove().await.unwrap();
}

/// Everything that can be asked of a sandbox ends, and says why.
async fn all_is_lost(way: Way, lose: impl Fn(&Way)) {
    let engine = engine_behind(&way).await;
    let sandbox = sandbox_of(&engine).await;
    let image = small_image().await;
    let running = sandbox.start(&command(&["sleep", "1000"]), Stdio::Pipes).await.unwrap();
    lose(&way);
    // From here on waiting takes no time: what has a limit reaches it at once.
    tokio::time::pause();
    let path = WorkspacePath::parse("x").unwrap();
    let placement = Placement::new(path.clone(), Body::Bytes(Bytes::from("x")), Access::ReadWrite);
    let into = tempfile::tempdir().unwrap();
    let gone = "sandbox::engine_gone";
    assert_eq!(code(running.finish().await), gone);
    assert_eq!(code(sandbox.exec(&command(&["true"])).await), gone);
    assert_eq!(code(sandbox.put(vec![placement]).await), gone);
    assert_eq!(code(sandbox.read(&path, 1).await), gone);
    assert_eq!(code(sandbox.collect(&[path], &Caps::default(), into.path()).await), gone);
    let prepared = engine.prepare(&Image::tag("python:3.12-slim"), &Silent).await;
    assert_eq!(prepared.unwrap_err().code(), gone);
    let started = engine.start(&run_id(), &image, &spec(small_limits())).await;
    assert_eq!(started.unwrap_err().code(), gone);
    assert_eq!(engine.sweep().await.unwrap_err().code(), gone);
    assert_eq!(sandbox.remove().await.unwrap_err().code(), gone);
    tokio::time::resume();
    way.mend();
    assert!(exists(sandbox.id()).await, "nobody could remove it");
    assert!(engine.sweep().await.unwrap() > 0, "what could not be removed is tried again");
    assert!(!exists(sandbox.id()).await);
}

#[tokio::test]
async fn an_engine_that_is_gone_for_good_ends_everything_with_its_name() {
    all_is_lost(Way::open(), Way::cut).await;
}

#[tokio::test]
async fn a_frozen_engine_hangs_nothing() {
    all_is_lost(Way::open(), Way::freeze).await;
}

#[tokio::test]
async fn a_stream_that_is_silent_is_left_for_another() {
    let way = Way::open();
    let engine = engine_behind(&way).await;
    let sandbox = sandbox_of(&engine).await;
    let running = sandbox.start(&command(&["sh", "-c", "sleep 0.1; echo done"]), Stdio::Pipes).await.unwrap();
    // This stream never says anything again, and new ones do.
    way.strand();
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(16)).await;
    tokio::time::resume();
    assert_eq!(text(&running.finish().await.unwrap()), "done\n");
    sandbox.remove().await.unwrap();
}
