//! The real engine: tests of the sandbox fail without one, and say so.

#![allow(dead_code, reason = "each scene uses its part")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use tidemill::config::Build;
use tidemill::event::id::RunId;
use tidemill::sandbox::docker::Docker;
use tidemill::sandbox::{Engine as _, ReadyImage, Sandbox, Silent};
use tidemill::workflow::image::Image;
use tidemill::workflow::limits::Limits;

/// The base every test image starts from; made from Debian's packages where no registry can be reached.
const BASE: &str = "python:3.12-slim";

/// The engine, with the settings a build needs on any machine.
pub async fn engine() -> Docker {
    engine_in(Path::new(env!("CARGO_MANIFEST_DIR"))).await
}

/// The engine for the project in `root`.
pub async fn engine_in(root: &Path) -> Docker {
    let build =
        Build { network: Some("host".to_owned()), ca_bundle: Some("host".to_owned()), ..Build::default() };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/images/base/bootstrap");
    let bases = [(BASE.to_owned(), script.to_owned())].into();
    Docker::connect(root, &build, &bases).await.expect("the sandbox tests need a Docker engine")
}

/// A small image with a shell and Python; made once per machine, under the engine's own lock.
pub async fn small_image(docker: &Docker) -> ReadyImage {
    docker.prepare(&Image::Reference(BASE.to_owned()), &Silent).await.expect("the base image")
}

/// Limits that make a test quick to hit them.
pub fn small_limits() -> Limits {
    Limits { memory: 256 << 20, disk: 128 << 20, pids: 64, ..Limits::default() }
}

/// A fresh id.
pub fn run_id() -> RunId {
    RunId::new(Timestamp::now())
}

/// Runs `test` with a sandbox that is removed whatever becomes of the test.
pub async fn sandboxed<Test, Outcome>(limits: Limits, test: Test)
where
    Test: FnOnce(Arc<dyn Sandbox>) -> Outcome,
    Outcome: Future<Output = ()> + Send + 'static,
{
    let docker = engine().await;
    let image = small_image(&docker).await;
    let sandbox = docker.start(&run_id(), &image, &limits).await.expect("a sandbox");
    let done = tokio::spawn(test(sandbox.clone())).await;
    sandbox.remove().await.unwrap();
    if let Err(error) = done {
        std::panic::resume_unwind(error.into_panic());
    }
}
