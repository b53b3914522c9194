//! Every script of a project by itself: what it declares or what is wrong with it, and which files that hangs on.

use std::collections::BTreeSet;

use super::files::Files;
use super::load::{self, Gave};
use super::{Loaded, check};
use crate::config::Project;
use crate::diagnostic::{Diagnostic, Result};

/// What was found in the workflows folder.
#[derive(Debug)]
pub struct Survey {
    /// Every Lua file directly in it, by name.
    pub scripts: Vec<Surveyed>,
}

/// One script.
#[derive(Debug)]
pub struct Surveyed {
    /// Its root-relative name.
    pub file: String,
    /// The root-relative names of everything it asked for while it loaded, whether it was there or not.
    pub asked: BTreeSet<String>,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a script.
#[derive(Debug)]
pub enum Outcome {
    /// A workflow without a mistake.
    Workflow(Box<Loaded>),
    /// Something that other scripts require.
    Module,
    /// Mistakes, or nothing that anybody could use.
    Broken(Diagnostic),
}

/// Loads every script directly in the workflows folder.
///
/// Errors: `script::no_folder`; what is wrong with a script is its outcome.
pub async fn survey(project: &Project) -> Result<Survey> {
    let mut found = Vec::new();
    let mut required = BTreeSet::new();
    for file in check::scripts(project)? {
        let asked = BTreeSet::from([file.clone()]);
        let ran = match load::run(project, &file, Files::disk(&project.root)).await {
            Ok(ran) => ran,
            Err(mistake) => {
                found.push((Surveyed { file, asked, outcome: Outcome::Broken(mistake) }, Returned::Nothing));
                continue;
            }
        };
        required.extend(ran.host.required());
        let asked = asked.into_iter().chain(ran.host.files().asked()).collect();
        let returned = match &ran.gave {
            Gave::Other(_) if ran.mistakes.iter().all(Diagnostic::is_warning) => Returned::Something,
            _ => Returned::Nothing,
        };
        let outcome = match load::finish(&file, ran) {
            Ok(loaded) => Outcome::Workflow(Box::new(loaded)),
            Err(mistake) => Outcome::Broken(mistake),
        };
        found.push((Surveyed { file, asked, outcome }, returned));
    }
    let scripts = found.into_iter().map(|(surveyed, returned)| {
        // What it returns is no workflow, and need not be one where others require it.
        if returned == Returned::Something && required.contains(&surveyed.file) {
            return Surveyed { outcome: Outcome::Module, ..surveyed };
        }
        surveyed
    });
    Ok(Survey { scripts: scripts.collect() })
}

/// What a script without mistakes returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Returned {
    /// A value that is no workflow.
    Something,
    /// A workflow, or nothing that counts.
    Nothing,
}
