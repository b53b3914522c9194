//! The real engine, and one small image for all tests.

use std::collections::BTreeMap;
use std::path::Path;

use tidemill::config::{Build, Project};
use tidemill::sandbox::docker::Docker;
use tidemill::sandbox::{Engine as _, ReadyImage, Silent};
use tidemill::workflow::image::Image;

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
    let image = Image::Reference("python:3.12-slim".to_owned());
    engine().await.prepare(&image, &Silent).await.expect("the base image can be pulled or made")
}
