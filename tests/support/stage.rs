//! A whole story on the real engine: a project with one workflow, a scripted model, and a conductor.

use std::sync::Arc;

use tidemill::diagnostic::Report;
use tidemill::event::finding::Finding;
use tidemill::event::id::RunId;
use tidemill::event::state::RunState;
use tidemill::event::trigger::Trigger;
use tidemill::event::{Event, What};
use tidemill::run::conductor::{Conductor, Unfinished};
use tidemill::run::engines::Engines;
use tidemill::run::folder::RunFolder;
use tidemill::run::queue::Conduct as _;
use tidemill::run::{inputs, route};
use tidemill::sandbox::Silent;
use tidemill::script;
use tidemill::store::{NewRun, RunRow, Store};
use tokio_util::sync::CancellationToken;

use super::engine::small_image;
use super::project::Project;

/// One model, which plays a part.
const MODELS: &str = "[models.actor]\nprovider = \"scripted\"\nscript = \"models/actor.lua\"\n";

/// A project that is ready to run its workflow `story`.
pub struct Stage {
    pub project: Project,
    pub store: Store,
    pub conductor: Conductor,
}

/// What a run came to.
pub struct Played {
    pub row: RunRow,
    pub events: Vec<Event>,
}

impl Stage {
    /// A workflow `story` of these fields (Lua), and what its model `actor` does (Lua).
    pub async fn set(fields: &str, script: &str) -> Self {
        Self::with_models(fields, MODELS, script).await
    }

    /// With models of the caller's; the workflow names `actor`.
    pub async fn with_models(fields: &str, models: &str, script: &str) -> Self {
        let image = format!("image = mill.image \"{}\",", small_image().await.digest);
        Self::with_image(&image, fields, models, script).await
    }

    /// On another kind of sandbox than a container, which has no image.
    pub async fn without_image(fields: &str, script: &str) -> Self {
        Self::with_image("", fields, MODELS, script).await
    }

    async fn with_image(image: &str, fields: &str, models: &str, script: &str) -> Self {
        let workflow = format!(
            r#"local mill, expect, guard = require "tidemill", require "tidemill.expect", require "tidemill.guard"
return mill.workflow {{
  name = "story",
  {image}
  agent = {{ model = "actor", instructions = "Work.", max_turns = 8 }},
  {fields}
}}
"#
        );
        let actor = format!("local test = require \"tidemill.test\"\n{script}\n");
        let project =
            Project::new().config(models).workflow("story.lua", &workflow).file("models/actor.lua", actor);
        let opened = project.open();
        let store = Store::open(&opened.state()).await.expect("a store");
        let engines = Engines::new(&opened, |warning| panic!("{warning:?}"));
        let conductor = Conductor::new(&opened, &store, engines, Arc::new(Silent), Unfinished::Ends);
        Self { project, store, conductor }
    }

    /// Queues a run on an input, if any.
    pub async fn queue(&self, input: Option<(&str, &[u8])>) -> RunRow {
        let project = &self.conductor.project;
        let loaded =
            script::find(project, "story").await.unwrap_or_else(|error| panic!("{:#?}", error.report()));
        let route = route::route(project, &self.store, &loaded, None).await.expect("a route");
        let at = self.conductor.clock.now();
        let id = RunId::new(at);
        let folder = RunFolder::new(&project.state(), &id);
        let inputs = input.map(|(name, bytes)| {
            self.project.put(name, bytes);
            inputs::take(&self.project.path(name), &folder).expect("an input")
        });
        let new = NewRun {
            inputs: inputs.into_iter().collect(),
            ..NewRun::new(id.clone(), &route.workflow, Trigger::Manual, route.bundle, &route.model, at)
        };
        self.store.queue_run(new).await.expect("a queued run");
        self.store.run(&id).await.expect("a store").expect("the run")
    }

    /// Runs it to its end.
    pub async fn play(&self, input: Option<(&str, &[u8])>) -> Played {
        let row = self.queue(input).await;
        self.conduct(&row, CancellationToken::new()).await
    }

    /// Carries a queued run out.
    pub async fn conduct(&self, row: &RunRow, stop: CancellationToken) -> Played {
        self.conductor.conduct(row, stop).await.expect("the run was carried out");
        let row = self.store.run(&row.id).await.expect("a store").expect("the run");
        let events = self.store.events(&row.id, 0, 10_000).await.expect("events");
        Played { row, events }
    }
}

impl Played {
    pub fn state(&self) -> RunState {
        self.row.state
    }

    /// Why it ended.
    pub fn report(&self) -> &Report {
        self.row.report.as_ref().unwrap_or_else(|| panic!("the run {} has no report", self.row.state))
    }

    /// The findings of each check.
    pub fn checks(&self) -> Vec<&Vec<Finding>> {
        let found = self.events.iter().filter_map(|event| match &event.what {
            What::ChecksEnded { findings, .. } => Some(findings),
            _ => None,
        });
        found.collect()
    }

    /// What tools told the model, in order.
    pub fn told(&self) -> Vec<&str> {
        let told = self.events.iter().filter_map(|event| match &event.what {
            What::ToolEnded { output, .. } => Some(output.preview()),
            _ => None,
        });
        told.collect()
    }

    /// The container's id, when there was one.
    pub fn container(&self) -> Option<&str> {
        self.events.iter().find_map(|event| match &event.what {
            What::SandboxStarted { container, .. } => Some(container.as_str()),
            _ => None,
        })
    }
}

/// Whether a container is still on the engine.
pub async fn exists(container: &str) -> bool {
    let status = tokio::process::Command::new("docker")
        .args(["inspect", container])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status()
        .await;
    status.expect("the docker command").success()
}
