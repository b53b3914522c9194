//! What dead processes left is found while a daemon runs; what belongs to the living stays.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bollard::models::{ContainerCreateBody, NetworkCreateRequest};
use bollard::query_parameters::CreateContainerOptionsBuilder;
use tidemill::clock::Clock as _;
use tidemill::diagnostic::{Diagnostic, Result};
use tidemill::event::id::RunId;
use tidemill::run::sweeping::sweep_now_and_then;
use tidemill::sandbox::local::Bubblewrap;
use tidemill::sandbox::{Engine, Progress, ReadyImage, Sandbox, Silent, Spec};
use tidemill::workflow::image::Image;

use super::command;
use crate::support::clock::HastyClock;
use crate::support::engine::{engine, run_id, sandboxed, small_image, small_limits, spec};

/// Counts what it is asked for, and complains at will.
#[derive(Debug, Default)]
struct Counting {
    sweeps: AtomicUsize,
    well_until: usize,
}

#[async_trait]
impl Engine for Counting {
    async fn prepare(&self, _: &Image, _: &dyn Progress) -> Result<ReadyImage> {
        Err(Diagnostic::new("test::none", "no image"))
    }

    async fn start(&self, _: &RunId, _: &ReadyImage, _: &Spec) -> Result<Arc<dyn Sandbox>> {
        Err(Diagnostic::new("test::none", "no sandbox"))
    }

    async fn sweep(&self) -> Result<usize> {
        let before = self.sweeps.fetch_add(1, Ordering::Relaxed);
        if before < self.well_until { Ok(0) } else { Err(Diagnostic::new("test::gone", "no engine")) }
    }
}

#[tokio::test]
async fn every_minute_and_a_complaint_is_told_once() {
    let (clock, engine) =
        (HastyClock::default(), Arc::new(Counting { well_until: 2, ..Counting::default() }));
    let engines: [Arc<dyn Engine>; 1] = [engine.clone()];
    let complaints = AtomicUsize::new(0);
    let sweeping = sweep_now_and_then(
        &clock,
        || engines.to_vec(),
        |_| {
            complaints.fetch_add(1, Ordering::Relaxed);
        },
    );
    let four = async {
        while engine.sweeps.load(Ordering::Relaxed) < 4 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        () = four => {}
        () = sweeping => panic!("it ended"),
    }
    let minutes = u32::try_from(engine.sweeps.load(Ordering::Relaxed)).unwrap();
    assert_eq!(clock.elapsed(), Duration::from_secs(60) * minutes);
    assert_eq!(complaints.load(Ordering::Relaxed), 1);
}

/// A label like this process's, of one that has ended.
fn dead(owner: &str) -> String {
    let (before, start) = owner.rsplit_once('/').unwrap();
    format!("{before}/{}", start.parse::<u64>().unwrap() + 1)
}

#[tokio::test]
async fn a_network_of_the_dead_goes_and_one_of_the_living_stays() {
    let raw = bollard::Docker::connect_with_defaults().unwrap().negotiate_version().await.unwrap();
    let (docker, run) = (engine().await, run_id());
    sandboxed(small_limits(), |sandbox| async move {
        let labels = raw.inspect_container(sandbox.id(), None).await.unwrap().config.unwrap().labels.unwrap();
        let owner = labels["tidemill.owner"].clone();
        let names = [format!("tidemill-test-{run}-dead"), format!("tidemill-test-{run}-alive")];
        for (name, owner) in names.iter().zip([dead(&owner), owner]) {
            let mut labels = labels.clone();
            labels.insert("tidemill.owner".to_owned(), owner);
            let request = NetworkCreateRequest {
                name: name.clone(),
                internal: Some(true),
                labels: Some(labels),
                ..NetworkCreateRequest::default()
            };
            raw.create_network(request).await.unwrap();
        }
        let swept = docker.sweep().await;
        let there = |name: String| {
            let raw = raw.clone();
            async move { raw.inspect_network(&name, None).await.is_ok() }
        };
        let [gone, stays] = names;
        let found = (there(gone).await, there(stays.clone()).await);
        raw.remove_network(&stays).await.unwrap();
        // Another test's sweep may have been first.
        swept.unwrap();
        assert_eq!(found, (false, true));
    })
    .await;
}

#[tokio::test]
async fn folders_of_local_sandboxes_go_with_their_owner() {
    let state = tempfile::tempdir().unwrap();
    let bubblewrap = Bubblewrap::open(state.path()).await.expect("bubblewrap");
    let image = bubblewrap.prepare(&Image::tag(""), &Silent).await.unwrap();
    let sandbox = bubblewrap.start(&run_id(), &image, &spec(small_limits())).await.unwrap();
    sandbox.exec(&command(&["true"])).await.unwrap();
    let folder = state.path().join("local");
    let live = folder.join(sandbox.id());
    let owner = fs::read_to_string(live.join("owner")).unwrap();
    let left = folder.join("20260101-000000-dead-00000000");
    fs::create_dir_all(left.join("given/below")).unwrap();
    fs::write(left.join("owner"), dead(&owner)).unwrap();
    assert_eq!(bubblewrap.sweep().await.unwrap(), 1);
    assert!(!left.exists() && live.exists());
    sandbox.remove().await.unwrap();
}

/// A container of a dead process that does nothing, as a run's.
async fn container_of_the_dead(raw: &bollard::Docker, name: &str, labels: HashMap<String, String>) {
    let body = ContainerCreateBody {
        image: Some(small_image().await.digest),
        entrypoint: Some(vec!["sleep".to_owned(), "infinity".to_owned()]),
        labels: Some(labels),
        ..ContainerCreateBody::default()
    };
    let options = CreateContainerOptionsBuilder::default().name(name).build();
    // A sweep of another test may come between the two, and what does not run yet is no container that waits.
    for _ in 0..100 {
        if raw.create_container(Some(options.clone()), body.clone()).await.is_ok()
            && raw.start_container(name, None).await.is_ok()
        {
            return;
        }
    }
    panic!("no container could be made");
}

#[tokio::test]
async fn a_container_that_waits_for_its_run_stays_until_nobody_comes_back() {
    let raw = bollard::Docker::connect_with_defaults().unwrap().negotiate_version().await.unwrap();
    let (docker, run, state) = (engine().await, run_id(), tempfile::tempdir().unwrap());
    let name = format!("tidemill-{run}-waits");
    let note = state.path().join("sandboxes").join(&name);
    fs::create_dir_all(note.parent().unwrap()).unwrap();
    fs::write(&note, run.as_str()).unwrap();
    sandboxed(small_limits(), |sandbox| async move {
        let labels = raw.inspect_container(sandbox.id(), None).await.unwrap().config.unwrap().labels.unwrap();
        let labels = HashMap::from([
            ("tidemill.run".to_owned(), run.to_string()),
            ("tidemill.owner".to_owned(), dead(&labels["tidemill.owner"])),
            ("tidemill.state".to_owned(), state.path().display().to_string()),
        ]);
        container_of_the_dead(&raw, &name, labels).await;
        docker.sweep().await.unwrap();
        let waits = raw.inspect_container(&name, None).await.is_ok();
        fs::remove_file(note).unwrap();
        docker.sweep().await.unwrap();
        let stays = raw.inspect_container(&name, None).await.is_ok();
        assert_eq!((waits, stays), (true, false));
    })
    .await;
}
