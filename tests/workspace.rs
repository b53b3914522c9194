//! From a manifest in Lua to the files that are placed: what is found where, what is refused, what is recorded.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "workspace/artifacts.rs"]
mod artifacts;
#[path = "workspace/asked.rs"]
mod asked;
#[path = "workspace/git.rs"]
mod git;
#[path = "workspace/project.rs"]
mod project;
#[path = "workspace/sandbox.rs"]
mod sandbox;
#[path = "workspace/url.rs"]
mod url;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use tidemill::diagnostic::Diagnostic;
use tidemill::event::id::{Digest, RunId};
use tidemill::event::input::RawPath;
use tidemill::event::trigger::{Params, Trigger};
use tidemill::run::workspace::{Filling, Sources};
use tidemill::sandbox::{Body, Placement, Progress, Silent};
use tidemill::script;
use tidemill::store::Store;
use tidemill::workflow::view::{RunView, Snapshot};

use crate::support::clock::HastyClock;
use crate::support::project::Project;

/// A project, and the state of its runs.
struct Yard {
    project: Project,
    store: Store,
}

impl Yard {
    async fn new() -> Self {
        let models = "[models.actor]\nprovider = \"scripted\"\nscript = \"models/actor.lua\"\n";
        let project = Project::new().config(models);
        let store = Store::open(&project.open().state()).await.unwrap();
        Self { project, store }
    }

    /// What a workflow with this manifest (the inside of the Lua table) is given.
    async fn fill(&self, manifest: &str) -> Result<Filling, Diagnostic> {
        self.fill_with(manifest, || (), &Silent).await
    }

    /// What it is given by this value of its field `manifest`.
    async fn fill_by(&self, manifest: &str) -> Result<Filling, Diagnostic> {
        self.load_and_fill(manifest, || (), &Silent).await
    }

    /// The same, with something that happens after the script was loaded, and told what takes long.
    async fn fill_with(
        &self,
        manifest: &str,
        between: impl FnOnce(),
        progress: &dyn Progress,
    ) -> Result<Filling, Diagnostic> {
        self.load_and_fill(&format!("{{ {manifest} }}"), between, progress).await
    }

    async fn load_and_fill(
        &self,
        manifest: &str,
        between: impl FnOnce(),
        progress: &dyn Progress,
    ) -> Result<Filling, Diagnostic> {
        let text = format!(
            r#"local mill = require "tidemill"
return mill.workflow {{
  name = "yard", image = mill.image "x", agent = {{ model = "actor" }}, prompt = "x",
  manifest = {manifest},
}}
"#
        );
        self.project.put("workflows/yard.lua", text);
        let project = self.project.open();
        let loaded = script::load(&project, "workflows/yard.lua").await?;
        between();
        let clock = HastyClock::default();
        let sources = Sources { project: &project, store: &self.store, clock: &clock, progress };
        sources.fill_for(&loaded, &Arc::new(self.run())).await
    }

    fn run(&self) -> RunView {
        let file = self.project.path("dropped");
        self.project.put("dropped", "a,b\n");
        RunView {
            id: RunId::parse("r1").unwrap(),
            workflow: "yard".into(),
            trigger: Trigger::Manual,
            params: Params::new(),
            queued_at: Timestamp::UNIX_EPOCH,
            fired: None,
            attempt: 0,
            inputs: vec![Snapshot {
                path: RawPath::new("energy/h7.csv"),
                file,
                size: 4,
                digest: Digest::of("a,b\n"),
            }],
        }
    }
}

/// Path = content, as text.
fn contents(filling: &Filling) -> BTreeMap<&str, String> {
    filling.files.iter().map(|file| (file.path.as_str(), text(file))).collect()
}

fn text(file: &Placement) -> String {
    let bytes = match &file.body {
        Body::Bytes(bytes) => bytes.to_vec(),
        Body::File(path) => std::fs::read(path).unwrap(),
    };
    assert_eq!(file.digest, Some(Digest::of(&bytes)), "{}", file.path);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn paths(filling: &Filling) -> Vec<&str> {
    filling.files.iter().map(|file| file.path.as_str()).collect()
}

fn file<'a>(filling: &'a Filling, path: &str) -> &'a Placement {
    filling.files.iter().find(|file| file.path.as_str() == path).unwrap_or_else(|| panic!("no {path}"))
}
