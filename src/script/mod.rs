//! The Lua host: loads a script, reads what it declares, and runs its functions within limits.

pub mod api;
pub mod archive;
mod check;
mod declare;
mod errors;
mod fields;
mod files;
mod filling;
mod format;
mod hooks;
mod host;
mod limits;
mod load;
mod place;
mod play;
mod published;
mod raised;
mod reading;
mod require;
mod spans;
pub mod survey;
mod time;
mod value;
mod view;
mod vm;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::config::Project;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::{Digest, Hasher};
use crate::workflow::Workflow;
use files::Files;

pub use check::{Checked, check, find};
pub use hooks::Script;
pub use play::load_model;

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

/// Loads the script at the root-relative path `file` in a fresh Lua state.
///
/// Errors: every mistake of the script in one diagnostic, `script::...`.
pub async fn load(project: &Project, file: &str) -> Result<Loaded> {
    let ran = load::run(project, file, Files::disk(&project.root)).await?;
    load::finish(file, ran)
}

/// Loads a pinned script: Lua and text come from the bundle alone.
pub async fn load_bundle(project: &Project, bundle: &Bundle) -> Result<Loaded> {
    let ran = load::run(project, &bundle.entry, Files::pinned(bundle)).await?;
    load::finish(&bundle.entry, ran)
}
