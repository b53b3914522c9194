//! The Lua host: loads a script, reads what it declares, and runs its functions within limits.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::config::Project;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::{Digest, Hasher};
use crate::event::verdict::Stage;
use crate::expect::Validate;
use crate::guard::Guard;
use crate::model::scripted::Play;
use crate::workflow::view::RunView;
use crate::workflow::{Hook, Workflow};

/// A script and everything it read while it loaded: what a run is pinned to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bundle {
    /// Root-relative path of the script.
    pub entry: String,
    /// Root-relative path = content: the script, the modules it required, the text files it read.
    pub files: BTreeMap<String, String>,
}

impl Bundle {
    /// Hash of the entry's name and every file's name and content.
    pub fn digest(&self) -> Digest {
        let mut hasher = Hasher::default();
        let mut part = |text: &str| {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        };
        part(&self.entry);
        for (name, text) in &self.files {
            part(name);
            part(text);
        }
        hasher.finish()
    }
}

/// A script that loaded without a mistake.
#[derive(Debug)]
pub struct Loaded {
    /// What it declares.
    pub workflow: Workflow,
    /// Its functions.
    pub script: Script,
    /// What a run of it is pinned to.
    pub bundle: Bundle,
    /// What deserves a look and stops nothing.
    pub warnings: Vec<Diagnostic>,
}

/// What `tidemill check` found.
#[derive(Debug)]
pub struct Checked {
    /// The workflows without mistakes, by name.
    pub workflows: Vec<Workflow>,
    /// Mistakes and warnings, in the order of the files.
    pub diagnostics: Vec<Diagnostic>,
}

/// A loaded script's functions; clones share one Lua state.
#[derive(Debug, Clone)]
pub struct Script;

fn unready<T>() -> Result<T> {
    Err(Diagnostic::new("script::unready", "scripts cannot be loaded yet"))
}

/// Loads the script at the root-relative path `file` in a fresh Lua state. All its mistakes are in one diagnostic.
pub async fn load(_project: &Project, _file: &str) -> Result<Loaded> {
    unready()
}

/// Loads a pinned script: Lua and text come from the bundle alone.
pub async fn load_bundle(_project: &Project, _bundle: &Bundle) -> Result<Loaded> {
    unready()
}

/// Loads the workflow of that name.
pub async fn find(_project: &Project, _name: &str) -> Result<Loaded> {
    unready()
}

/// Checks scripts; with no files, every one directly in the workflows folder.
pub async fn check(_project: &Project, _files: &[PathBuf]) -> Checked {
    Checked {
        workflows: Vec::new(),
        diagnostics: Vec::new(),
    }
}

/// Loads a scripted model from the root-relative path `file`.
pub async fn load_model(_project: &Project, _file: &str) -> Result<Box<dyn Play>> {
    unready()
}

impl Script {
    /// The prompt a function makes for a run.
    pub async fn prompt(&self, _hook: Hook, _run: Arc<RunView>) -> Result<String> {
        unready()
    }

    /// A guardrail that is a function of the script.
    pub fn guard(&self, _on: Stage, _name: &str, _hook: Hook, _run: Arc<RunView>) -> Box<dyn Guard> {
        unimplemented!()
    }

    /// The check across files that is a function of the script.
    pub fn validate(&self, _hook: Hook) -> Box<dyn Validate> {
        unimplemented!()
    }
}
