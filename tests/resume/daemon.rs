//! The daemon as a process that can be killed, with a model behind the wire and one workflow.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::process::Stdio;
use std::time::Duration;

use tidemill::event::{Event, What};
use tidemill::store::{RunFilter, RunRow, Store};
use tokio::process::{Child, Command};

use crate::support::engine::small_image;
use crate::support::project::Project;
use crate::support::wire::{Protocol, Wire};

/// How often is looked, and for how long.
const LOOK: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(90);

/// A project whose workflow takes every dropped text, and its model.
pub struct Mill {
    pub project: Project,
    pub store: Store,
    pub wire: Wire,
}

impl Mill {
    pub async fn build() -> Self {
        let wire = Wire::start(Protocol::Responses).await;
        let config = format!(
            "[watch]\nsettle = \"100ms\"\n\n[models.actor]\nprovider = \"openai\"\nbase_url = \"{}\"\n",
            wire.base_url()
        );
        let workflow = format!(
            r#"local mill, expect = require "tidemill", require "tidemill.expect"
return mill.workflow {{
  name = "story",
  triggers = {{ mill.drop {{ glob = "*.txt" }} }},
  image = mill.image "{}",
  manifest = {{ ["input/data.txt"] = mill.input(), ["notes.txt"] = mill.text("old", {{ access = "rw" }}) }},
  agent = {{ model = "actor", instructions = "Work.", max_turns = 8 }},
  prompt = "Do it.",
  outputs = {{ ["output/a.txt"] = expect.text {{ min_words = 1 }} }},
}}
"#,
            small_image().await.digest
        );
        let project = Project::new().config(&config).workflow("story.lua", &workflow);
        let store = Store::open(&project.open().state()).await.unwrap();
        Self { project, store, wire }
    }

    /// A daemon at work on it.
    pub fn watch(&self) -> Child {
        Command::new(env!("CARGO_BIN_EXE_tidemill"))
            .args(["watch", "--project"])
            .arg(self.project.root())
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap()
    }

    /// The only run, as soon as it has such an event.
    pub async fn until(&self, wanted: impl Fn(&What) -> bool) -> (RunRow, Vec<Event>) {
        let waiting = async {
            loop {
                if let Some(run) = self.store.runs(&RunFilter::default()).await.unwrap().pop() {
                    let events = self.store.all_events(&run.id).await.unwrap();
                    if events.iter().any(|event| wanted(&event.what)) {
                        // Read after them: it is never behind what they tell.
                        return (self.store.run(&run.id).await.unwrap().unwrap(), events);
                    }
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        let found = tokio::time::timeout(LONG, waiting).await;
        if found.is_err() {
            let runs = self.store.runs(&RunFilter::default()).await.unwrap();
            let events = self.store.all_events(&runs[0].id).await.unwrap();
            unreachable!("it never came: {events:#?}");
        }
        found.unwrap()
    }

    /// The run at its end.
    pub async fn ended(&self) -> (RunRow, Vec<Event>) {
        self.until(|what| matches!(what, What::RunEnded { .. })).await
    }

    /// What was published.
    pub fn artifact(&self, run: &RunRow) -> String {
        let folder = run.published.as_ref().unwrap();
        std::fs::read_to_string(self.project.path(folder).join("a.txt")).unwrap()
    }
}

/// With a signal, and its end.
pub async fn end(mut child: Child, signal: &str) {
    let pid = child.id().unwrap().to_string();
    let sent = Command::new("kill").args([&format!("-{signal}"), &pid]).status().await.unwrap();
    assert!(sent.success());
    child.wait().await.unwrap();
}

/// What `docker` prints, line by line.
pub async fn docker(arguments: &[&str]) -> Vec<String> {
    let done = Command::new("docker").args(arguments).output().await.unwrap();
    String::from_utf8_lossy(&done.stdout).lines().map(str::to_owned).collect()
}

/// All that is on the engine for a run.
pub async fn left_of(run: &RunRow) -> Vec<String> {
    let label = format!("label=tidemill.run={}", run.id);
    let mut left = docker(&["ps", "-aq", "--filter", &label]).await;
    left.extend(docker(&["volume", "ls", "-q", "--filter", &label]).await);
    left
}
