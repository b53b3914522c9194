//! The field `manifest`, and paths of the project.

use std::collections::{HashMap, HashSet};

use mlua::Value;

use crate::script::api::objects::{Rights, Thing};
use crate::script::host::Host;
use crate::script::place::Place;
use crate::script::published::Published;
use crate::script::{files, value};
use crate::workflow::manifest::{Checkout, Content, Entry, Handover};
use crate::workflow::path::WorkspacePath;

/// What a path of the project must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::script) enum Wanted {
    /// A regular file.
    File,
    /// A folder.
    Folder,
}

/// Reads a path of the project that must exist; text is read at once, so that a run is pinned to it.
pub(in crate::script) fn project_path(
    host: &Host,
    place: &Place,
    path: &str,
    value: &Value,
    wanted: Wanted,
) -> Option<String> {
    let text = value::text(host, place, path, value)?;
    let shown = value::shorten(&text);
    let name = match files::normal(&text) {
        Ok(name) => name,
        Err(why) => {
            let help = "paths are relative to the project's folder";
            return value::bad(host, place, "script::bad_path", format!("`{shown}` {why}"), help);
        }
    };
    if host.files().is_pinned() {
        let _ = host.files().text(&name);
        return Some(name);
    }
    let message = match (host.files().path(&name), wanted) {
        (Err(why), _) => format!("`{shown}` {why}"),
        (Ok(found), Wanted::File) if !found.is_file() => format!("`{shown}` is not a file"),
        (Ok(found), Wanted::Folder) if !found.is_dir() => format!("`{shown}` is not a folder"),
        (Ok(_), wanted) => {
            if wanted == Wanted::File {
                // What is no text, or too large for one, is no prompt; it is read when a run starts.
                let _ = host.files().text(&name);
            }
            return Some(name);
        }
    };
    let help = "paths are relative to the project's folder";
    value::bad(host, place, "script::missing_file", message, help)
}

/// Reads a path in the workspace.
pub(in crate::script) fn workspace_path(host: &Host, place: &Place, text: &str) -> Option<WorkspacePath> {
    WorkspacePath::parse(text).map_or_else(
        |why| {
            let message = format!("the path `{}` {why}", value::shorten(text));
            let mistake =
                place.mark_name(crate::diagnostic::Diagnostic::new("script::bad_path", message), "here");
            host.mistake(mistake.help("paths are relative to /workspace, like `input/data.csv`"));
            None
        },
        Some,
    )
}

/// Reads the field `manifest`.
pub(in crate::script) fn read(host: &Host, items: Vec<(String, Place, Value)>) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut taken = Taken::default();
    for (text, place, value) in items {
        let Some(path) = workspace_path(host, &place, &text) else {
            continue;
        };
        let Some((content, rights)) = content(&value) else {
            let wanted = "mill.input(), mill.file, mill.dir, mill.text, mill.bytes, mill.url, mill.git or \
                          mill.artifacts";
            value::wrong::<()>(host, &place, &format!("manifest[\"{path}\"]"), wanted, &value);
            continue;
        };
        let message = match (&content, path.is_folder()) {
            (Content::Dir(_), false) => Some(format!("`{path}` gets a folder, and is written as a file")),
            (Content::File(_) | Content::Text(_) | Content::Bytes(_) | Content::Url(_), true) => {
                Some(format!("`{path}` gets a file, and is written as a folder"))
            }
            (Content::Git(Checkout { path: None, .. }), false) => {
                Some(format!("`{path}` gets a whole repository, and is written as a file"))
            }
            (Content::Artifacts(Handover { path: None, .. }), false) => {
                Some(format!("`{path}` gets all artifacts of a run, and is written as a file"))
            }
            _ if taken.is_in_the_way_of(&path) => Some(format!("`{path}` is in the way of another entry")),
            _ => None,
        };
        if let Some(message) = message {
            let mistake = crate::diagnostic::Diagnostic::new("script::bad_path", message);
            let help = match &content {
                Content::Git(_) | Content::Artifacts(_) if !path.is_folder() => {
                    "end the path in `/`, or name one file with `path`"
                }
                _ => "a folder's path ends in `/`, a file's does not, and no entry lies under a file",
            };
            host.mistake(place.mark_name(mistake, "here").help(help));
            continue;
        }
        taken.add(&path);
        entries.push(Entry { path, content, access: rights.access, mode: rights.mode });
    }
    entries.sort_by(|left, right| left.path.cmp(&right.path));
    entries
}

/// Content, as it was declared or as `mill.artifacts` found it.
fn content(value: &Value) -> Option<(Content, Rights)> {
    match Thing::of(value) {
        Some(Thing::Content(content, rights)) => Some((content, rights)),
        Some(_) => None,
        None => Published::handover(value).map(|found| (Content::Artifacts(found), Rights::default())),
    }
}

/// The paths of entries so far.
#[derive(Debug, Default)]
struct Taken {
    /// Without the `/` of folders, and whether it is a folder.
    paths: HashMap<String, bool>,
    /// Folders that entries lie in.
    above: HashSet<String>,
}

impl Taken {
    /// Whether both cannot be there: they are the same, or one lies under the other's file.
    fn is_in_the_way_of(&self, path: &WorkspacePath) -> bool {
        let bare = path.as_str().trim_end_matches('/');
        let under_a_file = path.parents().any(|parent| self.paths.get(parent) == Some(&false));
        self.paths.contains_key(bare) || under_a_file || (!path.is_folder() && self.above.contains(bare))
    }

    fn add(&mut self, path: &WorkspacePath) {
        self.paths.insert(path.as_str().trim_end_matches('/').to_owned(), path.is_folder());
        self.above.extend(path.parents().map(str::to_owned));
    }
}
