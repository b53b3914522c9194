//! The real engine, and one small image for all tests.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use tidemill::config::{Build, Project};
use tidemill::event::id::RunId;
use tidemill::sandbox::docker::Docker;
use tidemill::sandbox::local::Bubblewrap;
use tidemill::sandbox::{Engine as _, ReadyImage, Sandbox, Silent, Spec};
use tidemill::workflow::image::Image;
use tidemill::workflow::limits::Limits;

/// This repository: its images and settings are the tests' as well.
pub fn repository() -> Project {
    Project::open(Path::new(env!("CARGO_MANIFEST_DIR"))).expect("the repository is a project")
}

/// The engine with this repository's settings. Without an engine every test that needs one fails and says so.
pub async fn engine() -> Docker {
    let project = repository();
    connect(&project.root, &project.config.build, &project.config.bases).await
}

/// An engine for a project in a temporary folder.
pub async fn connect(root: &Path, build: &Build, bases: &BTreeMap<String, String>) -> Docker {
    Docker::connect(root, build, bases)
        .await
        .expect("these tests need a Docker engine: see `tidemill doctor`")
}

/// The tests' image: the base of this repository's images, with a shell and Python.
pub async fn small_image() -> ReadyImage {
    let image = Image::tag("python:3.12-slim");
    engine().await.prepare(&image, &Silent).await.expect("the base image can be pulled or made")
}

/// The engine for a project in `root` that builds on this repository's base.
pub async fn engine_in(root: &Path) -> Docker {
    let repository = repository();
    let absolute = |(base, script): (&String, &String)| {
        (base.clone(), repository.root.join(script).to_string_lossy().into_owned())
    };
    let bases = repository.config.bases.iter().map(absolute).collect();
    connect(root, &repository.config.build, &bases).await
}

/// Limits that are quickly reached.
pub fn small_limits() -> Limits {
    Limits { memory: 256 << 20, disk: 128 << 20, pids: 64, ..Limits::default() }
}

/// A sandbox with nothing but limits.
pub fn spec(limits: Limits) -> Spec {
    Spec { limits, ..Spec::default() }
}

/// A fresh id.
pub fn run_id() -> RunId {
    RunId::new(Timestamp::now())
}

/// Runs `test` with a container that is removed whatever becomes of the test.
pub async fn sandboxed<Test, Outcome>(limits: Limits, test: Test)
where
    Test: FnOnce(Arc<dyn Sandbox>) -> Outcome,
    Outcome: Future<Output = ()> + Send + 'static,
{
    let docker = engine().await;
    let sandbox = docker.start(&run_id(), &small_image().await, &spec(limits)).await.expect("a sandbox");
    with(sandbox, test).await;
}

/// Runs `test` on every kind of sandbox, one after the other: all keep the same promises.
pub async fn everywhere<Test, Outcome>(limits: Limits, test: Test)
where
    Test: Fn(Arc<dyn Sandbox>) -> Outcome,
    Outcome: Future<Output = ()> + Send + 'static,
{
    sandboxed(limits.clone(), &test).await;
    let state = tempfile::tempdir().expect("a folder");
    let bubblewrap =
        Bubblewrap::open(state.path()).await.expect("these tests need bubblewrap: `apt install bubblewrap`");
    let image = bubblewrap.prepare(&Image::tag(""), &Silent).await.expect("no image");
    let sandbox = bubblewrap.start(&run_id(), &image, &spec(limits)).await.expect("a sandbox");
    with(sandbox, &test).await;
    let left = std::fs::read_dir(state.path().join("local")).expect("its folder").count();
    assert_eq!(left, 0, "a removed sandbox leaves nothing");
}

async fn with<Test, Outcome>(sandbox: Arc<dyn Sandbox>, test: Test)
where
    Test: FnOnce(Arc<dyn Sandbox>) -> Outcome,
    Outcome: Future<Output = ()> + Send + 'static,
{
    let done = tokio::spawn(test(sandbox.clone())).await;
    sandbox.remove().await.expect("the sandbox is removed");
    if let Err(error) = done {
        std::panic::resume_unwind(error.into_panic());
    }
}
