//! From a manifest to files for the sandbox.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::diagnostic::{Diagnostic, Result};
use crate::sandbox::{Body, Placement};
use crate::workflow::manifest::{Content, Entry};
use crate::workflow::path::WorkspacePath;
use crate::workflow::view::{RunView, Snapshot};

/// Files a folder entry may hold; more is a mistake such as a home folder.
const MOST_FILES: usize = 100_000;

/// Every file of the manifest, folders opened.
pub fn placements(manifest: &[Entry], run: &RunView, root: &Path) -> Result<Vec<Placement>> {
    let mut files = Vec::new();
    for entry in manifest {
        match &entry.content {
            Content::Input => files.push(input(entry, run)?),
            Content::File(path) => {
                let file = root.join(path);
                let target = if entry.path.is_folder() {
                    join(&entry.path, file.file_name())?
                } else {
                    entry.path.clone()
                };
                files.push(Placement { path: target, body: Body::File(file), access: entry.access });
            }
            Content::Text(text) => {
                let body = Body::Bytes(text.clone().into_bytes().into());
                files.push(Placement { path: entry.path.clone(), body, access: entry.access });
            }
            Content::Dir(path) => open_folder(entry, &root.join(path), &mut files)?,
        }
    }
    Ok(files)
}

fn input(entry: &Entry, run: &RunView) -> Result<Placement> {
    let Some(snapshot) = run.inputs.first() else {
        let message = format!("`{}` is `mill.input()`, and this run has no input", entry.path);
        return Err(Diagnostic::new("run::no_input", message)
            .help(format!("name a file: `tidemill run {} FILE`", run.workflow)));
    };
    let path = if entry.path.is_folder() {
        join(&entry.path, Some(OsStr::new(&safe_name(snapshot))))?
    } else {
        entry.path.clone()
    };
    Ok(Placement { path, body: Body::File(snapshot.file.clone()), access: entry.access })
}

/// `input` with the extension of the dropped file where that is harmless.
fn safe_name(snapshot: &Snapshot) -> String {
    let extension = Path::new(snapshot.path.name()).extension().and_then(OsStr::to_str).unwrap_or_default();
    let harmless = !extension.is_empty()
        && extension.len() <= 16
        && extension.chars().all(|character| character.is_ascii_alphanumeric());
    if harmless { format!("input.{extension}") } else { "input".to_owned() }
}

fn open_folder(entry: &Entry, folder: &Path, files: &mut Vec<Placement>) -> Result<()> {
    let mut pending = vec![(folder.to_owned(), entry.path.clone())];
    while let Some((folder, target)) = pending.pop() {
        let unreadable = |error: std::io::Error| {
            Diagnostic::new("run::manifest", format!("cannot read the folder {}", folder.display()))
                .cause(error)
                .help(format!("`{}` of the manifest names it", entry.path))
        };
        let mut names: Vec<PathBuf> = Vec::new();
        for item in std::fs::read_dir(&folder).map_err(unreadable)? {
            names.push(item.map_err(unreadable)?.path());
        }
        names.sort();
        for path in names {
            let kind = path.symlink_metadata().map_err(unreadable)?.file_type();
            let place = join(&target, path.file_name())?;
            if kind.is_dir() {
                pending.push((path, place));
            } else if kind.is_file() {
                files.push(Placement { path: place, body: Body::File(path), access: entry.access });
            }
            // Links, pipes and devices stay where they are: a manifest folder holds files.
            if files.len() > MOST_FILES {
                let message = format!("`{}` of the manifest holds more than {MOST_FILES} files", entry.path);
                return Err(Diagnostic::new("run::manifest", message).help("name a smaller folder"));
            }
        }
    }
    Ok(())
}

fn join(folder: &WorkspacePath, name: Option<&OsStr>) -> Result<WorkspacePath> {
    let name = name.unwrap_or_default().to_string_lossy();
    let path = format!("{}/{name}", folder.as_str().trim_end_matches('/'));
    WorkspacePath::parse(&path).map_err(|why| {
        Diagnostic::new(
            "run::manifest",
            format!("the file `{}` {why}", crate::event::input::printable(OsStr::new(&path))),
        )
        .help("rename it, or take it out of the folder")
    })
}
