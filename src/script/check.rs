//! Every script of a project at once: `tidemill check`, and finding a workflow by its name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::files::Files;
use super::load::{self, Gave, Ran};
use super::place::Place;
use super::{Loaded, load as load_file};
use crate::config::Project;
use crate::diagnostic::{Diagnostic, Result, nearest};
use crate::workflow::Workflow;

/// What `tidemill check` found.
#[derive(Debug)]
pub struct Checked {
    /// The workflows without mistakes, by name.
    pub workflows: Vec<Workflow>,
    /// Mistakes and warnings, in the order of the files.
    pub diagnostics: Vec<Diagnostic>,
}

impl Checked {
    /// How many mistakes there are; warnings are none.
    pub fn mistakes(&self) -> usize {
        self.diagnostics.iter().filter(|found| !found.is_warning()).count()
    }
}

/// Checks scripts; with no files, every one directly in the workflows folder.
///
/// A file is named as the caller names it: relative to the root, or anywhere.
pub async fn check(project: &Project, files: &[PathBuf]) -> Checked {
    let mut checked = Checked { workflows: Vec::new(), diagnostics: Vec::new() };
    let scripts: Vec<(String, Option<PathBuf>)> = if files.is_empty() {
        match scripts(project) {
            Ok(scripts) => scripts.into_iter().map(|name| (name, None)).collect(),
            Err(mistake) => {
                checked.diagnostics.push(mistake);
                Vec::new()
            }
        }
    } else {
        files.iter().map(|file| name_of(project, file)).collect()
    };
    let mut declared: BTreeMap<String, String> = BTreeMap::new();
    let mut paths: BTreeMap<String, String> = BTreeMap::new();
    let mut required = BTreeSet::new();
    let mut others = Vec::new();
    let mut named = Vec::new();
    let mut seen = BTreeSet::new();
    for (name, outside) in scripts {
        let files = match outside {
            Some(path) => Files::with_outside(&project.root, &name, path),
            None => Files::disk(&project.root),
        };
        let ran = match load::run(project, &name, files).await {
            Ok(ran) => ran,
            Err(mistake) => {
                checked.diagnostics.push(mistake);
                continue;
            }
        };
        required.extend(ran.host.required());
        named.extend(ran.host.take_named());
        let Ran { host, gave, mistakes, .. } = ran;
        let clean = mistakes.iter().all(Diagnostic::is_warning);
        // A module's mistake shows in every script that requires it.
        checked.diagnostics.extend(mistakes.into_iter().filter(|mistake| seen.insert(key(mistake))));
        match gave {
            Gave::Workflow(mut workflow) => {
                name.clone_into(&mut workflow.file);
                let place = host.declared();
                if let Some(other) = declared.get(&workflow.name).filter(|_| !workflow.name.is_empty()) {
                    checked.diagnostics.push(twice(&workflow.name, place.as_ref(), other));
                    continue;
                }
                declared.insert(workflow.name.clone(), name.clone());
                for webhook in workflow.webhooks.iter().filter(|webhook| !webhook.path.is_empty()) {
                    match paths.get(&webhook.path) {
                        Some(other) if *other != name => {
                            checked.diagnostics.push(same_path(&webhook.path, place.as_ref(), other));
                        }
                        _ => drop(paths.insert(webhook.path.clone(), name.clone())),
                    }
                }
                if clean {
                    let bundle = super::Bundle { entry: name, files: host.files().all() };
                    workflow.digest = bundle.digest();
                    checked.workflows.push(*workflow);
                }
            }
            Gave::Other(value) if clean => others.push((name, super::value::describe(&value))),
            _ => {}
        }
    }
    for (name, what) in others.into_iter().filter(|(name, _)| !required.contains(name)) {
        let message = format!("{name} returns {what}: it is no workflow, and no script requires it");
        let warning = Diagnostic::new("script::unused_file", message)
            .help("end it with `return mill.workflow { ... }`, require it, or take it out of the folder");
        checked.diagnostics.push(warning.warning());
    }
    // Among some of the files, or among those that do not even load, a name may be missing that is there.
    if files.is_empty() && checked.mistakes() == 0 {
        let unknown = named.iter().filter(|(name, _)| !declared.contains_key(name));
        checked.diagnostics.extend(unknown.map(|(name, place)| nobody(name, place, &declared)));
    }
    checked.workflows.sort_by(|left, right| left.name.cmp(&right.name));
    checked
}

/// Loads the workflow of that name.
///
/// Errors: `usage::unknown_workflow`; the mistakes of its script.
pub async fn find(project: &Project, name: &str) -> Result<Loaded> {
    let mut known = Vec::new();
    let mut broken = Vec::new();
    for file in scripts(project)? {
        match load_file(project, &file).await {
            Ok(loaded) if loaded.workflow.name == name => return Ok(loaded),
            Ok(loaded) => known.push(loaded.workflow.name),
            // A module is no workflow, and other scripts' mistakes are theirs, unless it is the one that was meant.
            Err(mistake) if mistake.code() == "script::no_workflow" => {}
            Err(mistake) => broken.push((file, mistake)),
        }
    }
    let stem = |file: &str| Path::new(file).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let quoted = [format!("\"{name}\""), format!("'{name}'")];
    if let Some(index) = broken.iter().position(|(file, _)| {
        let text = std::fs::read_to_string(project.root.join(file)).unwrap_or_default();
        stem(file).as_deref() == Some(name) || quoted.iter().any(|quoted| text.contains(quoted.as_str()))
    }) {
        return Err(broken.swap_remove(index).1);
    }
    let shown = super::value::shorten(name);
    let mistake = Diagnostic::new("usage::unknown_workflow", format!("there is no workflow `{shown}`"));
    let help = match nearest(name, known.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => "`tidemill check` says what is wrong with the scripts".into(),
        None => format!("there is: {}", known.join(", ")),
    };
    Err(mistake.help(help))
}

/// The root-relative names of the Lua files directly in the workflows folder, in order.
pub(super) fn scripts(project: &Project) -> Result<Vec<String>> {
    let folder = &project.config.folders.workflows;
    let unreadable = |error: std::io::Error| {
        let message = format!("cannot read the workflows folder {}", folder.display());
        Diagnostic::new("script::no_folder", message)
            .cause(error)
            .help("make it, or set `folders.workflows` in tidemill.toml")
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(project.root.join(folder)).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let is_script = path.extension().is_some_and(|extension| extension == "lua") && path.is_file();
        if let (true, Some(name)) = (is_script, path.file_name().and_then(|name| name.to_str())) {
            names.push(folder.join(name).to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// A file as the command line names it: its root-relative name, or its name as given and where it stands.
fn name_of(project: &Project, given: &Path) -> (String, Option<PathBuf>) {
    let absolute = std::path::absolute(given).unwrap_or_else(|_| given.to_owned());
    let under =
        |path: &Path, root: &Path| path.strip_prefix(root).ok().and_then(Path::to_str).map(str::to_owned);
    let real = absolute.canonicalize().unwrap_or_else(|_| absolute.clone());
    let root = project.root.canonicalize().unwrap_or_else(|_| project.root.clone());
    match under(&real, &root) {
        Some(name) => (name, None),
        None => (given.display().to_string(), Some(absolute)),
    }
}

/// What makes two mistakes the same.
fn key(mistake: &Diagnostic) -> String {
    let report = mistake.report();
    let place = report.place.map(|place| (place.file, place.line, place.column));
    format!("{} {place:?} {}", report.code, report.message)
}

fn nobody(name: &str, place: &Place, declared: &BTreeMap<String, String>) -> Diagnostic {
    let message = format!("no workflow of this project is named `{name}`");
    let warning = place.mark_value(Diagnostic::new("script::unknown_workflow", message), "here").warning();
    let known: Vec<&str> = declared.keys().map(String::as_str).collect();
    warning.help(super::api::advice(nearest(name, known.iter().copied()), &known))
}

fn same_path(path: &str, place: Option<&Place>, other: &str) -> Diagnostic {
    let message = format!("a webhook of {other} has the path `{path}` as well");
    let mistake = Diagnostic::new("script::duplicate_webhook", message)
        .help("a path leads to one workflow; give one of them another");
    match place {
        Some(place) => place.mark_value(mistake, "the second with this path"),
        None => mistake,
    }
}

fn twice(name: &str, place: Option<&Place>, other: &str) -> Diagnostic {
    let message = format!("the workflow `{name}` is declared in {other} as well");
    let mistake = Diagnostic::new("script::duplicate_workflow", message)
        .help("names are used in paths and on the command line; rename one of them");
    match place {
        Some(place) => place.mark_value(mistake, "the second of this name"),
        None => mistake,
    }
}
