//! Containers that stand ready: clean, each for one run, and none left.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use bollard::query_parameters::{
    KillContainerOptions, ListContainersOptionsBuilder, ListVolumesOptionsBuilder,
    UploadToContainerOptionsBuilder,
};
use tidemill::config::{Config, Project};
use tidemill::event::isolation::Isolation;
use tidemill::sandbox::docker::Docker;
use tidemill::sandbox::{Command, Engine as _, ReadyImage, Sandbox, Spec};
use tidemill::workflow::limits::Limits;

use crate::support::engine::{run_id, small_image, small_limits, spec};
use crate::support::project;

const PATIENCE: Duration = Duration::from_secs(60);

/// A project whose engine keeps one container ready.
struct Mill {
    project: tempfile::TempDir,
    docker: Docker,
    image: ReadyImage,
}

impl Mill {
    async fn open() -> Self {
        let (image, project) = (small_image().await, tempfile::tempdir().unwrap());
        let docker = settings(&project, "[sandbox]\nwarm = 1\n").await.keep_warm();
        Self { project, docker, image }
    }

    async fn start(&self, spec: &Spec) -> Arc<dyn Sandbox> {
        self.docker.start(&run_id(), &self.image, spec).await.unwrap()
    }

    /// Starts one and removes it; waits until the next one stands ready, and gives its id.
    async fn warm_up(&self, spec: &Spec) -> String {
        let sandbox = self.start(spec).await;
        assert_eq!(sandbox.isolation().warm, None);
        sandbox.remove().await.unwrap();
        self.filled().await;
        self.standing().await.0.pop().unwrap()
    }

    async fn filled(&self) {
        while self.docker.warm() == 0 {
            tokio::task::yield_now().await;
        }
    }

    async fn standing(&self) -> (Vec<String>, Vec<String>) {
        standing(self.project.path()).await
    }

    /// What is left after the end.
    async fn settled(&self) -> usize {
        self.docker.settle(PATIENCE).await;
        let (containers, volumes) = self.standing().await;
        containers.len() + volumes.len()
    }
}

/// Containers and volumes of the project in `root`, as the engine sees them.
async fn standing(root: &Path) -> (Vec<String>, Vec<String>) {
    let digest = tidemill::event::id::Digest::of(root.as_os_str().as_encoded_bytes());
    let label = format!("tidemill.project={}", digest.short());
    let filters = [("label".to_owned(), vec![label])].into();
    let containers = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
    let volumes = ListVolumesOptionsBuilder::default().filters(&filters).build();
    let containers = raw().list_containers(Some(containers)).await.unwrap();
    let volumes = raw().list_volumes(Some(volumes)).await.unwrap().volumes.unwrap_or_default();
    (
        containers.into_iter().filter_map(|container| container.id).collect(),
        volumes.into_iter().map(|volume| volume.name).collect(),
    )
}

async fn settings(project: &tempfile::TempDir, text: &str) -> Docker {
    let project = Project { root: project.path().to_owned(), config: Config::parse(text).unwrap() };
    Docker::open(&project).await.unwrap()
}

fn raw() -> bollard::Docker {
    bollard::Docker::connect_with_defaults().unwrap()
}

async fn says(sandbox: &Arc<dyn Sandbox>, argv: &[&str]) -> String {
    let argv = argv.iter().map(|word| (*word).to_owned()).collect();
    let done = sandbox.exec(&Command { argv, timeout: PATIENCE }).await.unwrap();
    let text = String::from_utf8_lossy(&done.output.head).into_owned();
    assert_eq!(done.exit, Some(0), "{text}");
    text
}

/// As root, as nobody in the sandbox is.
async fn execute_inside(id: &str, argv: &[&str]) {
    let options = bollard::models::ExecConfig {
        cmd: Some(argv.iter().map(|word| (*word).to_owned()).collect()),
        user: Some("0".to_owned()),
        ..bollard::models::ExecConfig::default()
    };
    let exec = raw().create_exec(id, options).await.unwrap().id;
    let detached =
        bollard::exec::StartExecOptions { detach: true, ..bollard::exec::StartExecOptions::default() };
    raw().start_exec(&exec, Some(detached)).await.unwrap();
}

/// Starts a run while `spoil` has spoilt what stood ready: it gets another container, and the spoilt one goes.
async fn refused<Spoiling: Future<Output = ()>>(spoil: impl FnOnce(String) -> Spoiling) -> Vec<String> {
    let mill = Mill::open().await;
    let spoilt = mill.warm_up(&spec(small_limits())).await;
    spoil(spoilt.clone()).await;
    let sandbox = mill.start(&spec(small_limits())).await;
    let isolation = sandbox.isolation().clone();
    assert_ne!(sandbox.id(), spoilt);
    assert_eq!(says(&sandbox, &["ls", "-A"]).await, "");
    sandbox.remove().await.unwrap();
    mill.filled().await;
    while mill.standing().await.0.contains(&spoilt) {
        tokio::task::yield_now().await;
    }
    assert_eq!(mill.settled().await, 0);
    assert_eq!(isolation.warm, None);
    isolation.refused
}

#[tokio::test]
async fn each_run_has_a_container_of_its_own_and_none_is_left() {
    let mill = Mill::open().await;
    let mut seen = vec![mill.warm_up(&spec(small_limits())).await];
    for _ in 0..3 {
        mill.filled().await;
        let sandbox = mill.start(&spec(small_limits())).await;
        let Isolation { warm, refused, memory_bytes, pids, .. } = sandbox.isolation().clone();
        assert!(warm.unwrap().starts_with("it stood ready for "), "{refused:?}");
        assert_eq!((memory_bytes, pids, refused), (256 << 20, 64, Vec::new()));
        // What this run leaves behind, nobody meets.
        assert_eq!(says(&sandbox, &["ls", "-A", "/workspace", "/tmp"]).await, "/tmp:\n\n/workspace:\n");
        says(&sandbox, &["touch", "/workspace/mine", "/tmp/mine"]).await;
        seen.push(sandbox.id().to_owned());
        sandbox.remove().await.unwrap();
    }
    assert_eq!(seen[0], seen[1], "what stood ready was taken");
    seen.dedup();
    let all = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!((all, seen.len()), (3, 3));
    assert_eq!(mill.settled().await, 0);
}

#[tokio::test]
async fn limits_and_variables_hold_in_one_that_stood_ready() {
    let mill = Mill::open().await;
    let bare = spec(small_limits());
    mill.warm_up(&bare).await;
    let variables = [("NAME", "a b='c'"), ("HOME", "/workspace"), ("PATH", "/workspace/tools:/usr/bin:/bin")];
    let environment: BTreeMap<String, String> =
        variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let sandbox = mill.start(&Spec { environment, ..bare.clone() }).await;
    assert!(sandbox.isolation().warm.is_some());
    let print = "printf '%s|' \"$NAME\" \"$HOME\" \"$LANG\"; env | grep -c KEY; true";
    assert_eq!(says(&sandbox, &["sh", "-c", print]).await, "a b='c'|/workspace|C.UTF-8|0\n");
    // A program is looked for where the run's own variable says.
    let script = "mkdir tools && printf '#!/bin/sh\\necho found\\n' > tools/tool && chmod +x tools/tool";
    says(&sandbox, &["sh", "-c", script]).await;
    assert_eq!(says(&sandbox, &["tool"]).await, "found\n");
    let inspected = raw().inspect_container(sandbox.id(), None).await.unwrap();
    assert_eq!(inspected.host_config.unwrap().memory, Some(256 << 20));
    let blocks = says(&sandbox, &["df", "-B1", "--output=size", "/workspace"]).await;
    assert!(blocks.contains(&(128 << 20).to_string()), "{blocks}");
    sandbox.remove().await.unwrap();
    // Other limits are another container.
    mill.filled().await;
    let other = mill.start(&spec(Limits { pids: 65, ..small_limits() })).await;
    assert_eq!((&other.isolation().warm, other.isolation().pids), (&None, 65));
    other.remove().await.unwrap();
    assert_eq!(mill.settled().await, 0);
}

#[tokio::test]
async fn one_with_a_planted_file_is_refused_and_removed() {
    let why = refused(async |id| {
        let mut archive = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(4);
        header.set_mode(0o644);
        archive.append_data(&mut header, "\u{1b}[2Jplanted", &b"evil"[..]).unwrap();
        let options = UploadToContainerOptionsBuilder::default().path("/workspace").build();
        let body = bollard::body_full(archive.into_inner().unwrap().into());
        raw().upload_to_container(&id, Some(options), body).await.unwrap();
    })
    .await;
    assert_eq!(why, ["/workspace is not empty: 1 in it"]);
    let why = refused(async |id| {
        execute_inside(&id, &["touch", "/tmp/planted"]).await;
        while raw().top_processes(&id, None).await.unwrap().processes.is_none_or(|all| all.len() != 1) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(why, ["/tmp is not empty: 1 in it"]);
}

#[tokio::test]
async fn one_in_which_something_runs_is_refused_and_removed() {
    let why = refused(async |id| execute_inside(&id, &["sleep", "1000"]).await).await;
    assert_eq!(why, ["a process runs in it besides the helper"]);
}

#[tokio::test]
async fn one_that_is_dead_or_was_loosened_is_skipped() {
    let why =
        refused(async |id| raw().kill_container(&id, None::<KillContainerOptions>).await.unwrap()).await;
    assert_eq!(why.len(), 1, "{why:?}");
    let why = refused(async |id| {
        let more = bollard::models::ContainerUpdateBody {
            pids_limit: Some(4096),
            ..bollard::models::ContainerUpdateBody::default()
        };
        raw().update_container(&id, more).await.unwrap();
    })
    .await;
    assert!(why.len() == 1 && why[0].contains("PidsLimit: asked for 64, found 4096"), "{why:?}");
}

#[tokio::test]
async fn only_who_asks_for_it_keeps_containers_ready() {
    let project = tempfile::tempdir().unwrap();
    let docker = settings(&project, "[sandbox]\nwarm = 3\n").await;
    let mill = Mill { project, docker, image: small_image().await };
    let sandbox = mill.start(&spec(small_limits())).await;
    assert_eq!(mill.standing().await.0, [sandbox.id()]);
    sandbox.remove().await.unwrap();
    assert_eq!(mill.settled().await, 0);
}

#[tokio::test]
async fn what_is_being_made_at_the_end_goes_as_well() {
    let mill = Mill::open().await;
    // The next one is being made while the process ends.
    mill.start(&spec(small_limits())).await.remove().await.unwrap();
    assert_eq!(mill.settled().await, 0);
}

/// A project that copies what is dropped; its image is the tests' own.
async fn copying() -> project::Project {
    let workflow = format!(
        r#"local mill, expect = require "tidemill", require "tidemill.expect"
return mill.workflow {{
  name = "copy", image = mill.image "{}", triggers = {{ mill.drop {{ glob = "*.txt" }} }},
  agent = {{ model = "actor", instructions = "Work.", max_turns = 4 }},
  prompt = "Do it.", outputs = {{ ["output/a.txt"] = expect.text {{ min_words = 1 }} }},
}}
"#,
        small_image().await.digest
    );
    let actor = r#"local test = require "tidemill.test"
return test.script { test.shell "mkdir -p output && echo new > output/a.txt", test.say "done" }
"#;
    let settings = "[watch]\nsettle = \"1ms\"\n[sandbox]\nwarm = 1\n\
                    [models.actor]\nprovider = \"scripted\"\nscript = \"models/actor.lua\"\n";
    project::Project::new().config(settings).workflow("copy.lua", &workflow).file("models/actor.lua", actor)
}

/// The isolation that stands in the receipt of the run on the file `name`.
async fn receipt(project: &project::Project, name: &str, text: &str) -> serde_json::Value {
    project.put(Path::new("inbox").join(name), text);
    loop {
        let stem = name.trim_end_matches(".txt");
        let found = project.files("outbox").into_iter().find(|path| {
            path.ends_with("receipt.json") && path.iter().any(|part| part.to_string_lossy().starts_with(stem))
        });
        if let Some(path) = found {
            let text = std::fs::read(project.path("outbox").join(path)).unwrap();
            let receipt: serde_json::Value = serde_json::from_slice(&text).unwrap();
            return receipt["isolation"].clone();
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_daemon_keeps_one_ready_and_nothing_is_left_when_it_is_killed() {
    let project = copying().await;
    let mut daemon = tokio::process::Command::new(env!("CARGO_BIN_EXE_tidemill"))
        .arg("watch")
        .current_dir(project.root())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let seen = tokio::time::timeout(PATIENCE, async {
        let first = receipt(&project, "one.txt", "1").await;
        // The first run's own container is gone; the one that is there is being made ready.
        while standing(project.root()).await.0.len() != 1 {
            tokio::task::yield_now().await;
        }
        let mut number = 1;
        loop {
            number += 1;
            let name = format!("two{number}.txt");
            let next = receipt(&project, &name, &name).await;
            if !next["warm"].is_null() {
                return (first, next);
            }
        }
    });
    let (first, next) = seen.await.expect("a run in a container that stood ready");
    assert!(first["warm"].is_null(), "{first}");
    assert!(next["warm"].as_str().unwrap().contains("no process ran in it but the helper"), "{next}");
    while standing(project.root()).await.0.is_empty() {
        tokio::task::yield_now().await;
    }
    daemon.kill().await.unwrap();
    let docker = Docker::open(&project.open()).await.unwrap();
    assert_ne!(standing(project.root()).await.0.len(), 0, "a killed process removes nothing");
    // What the engine was still doing for the dead process may end after a first look.
    let swept = tokio::time::timeout(PATIENCE, async {
        while standing(project.root()).await != (Vec::new(), Vec::new()) {
            docker.sweep().await.unwrap();
        }
    });
    swept.await.expect("the next process finds all that is left");
}
