//! From what was found to what is placed: paths, permissions, hashes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;

use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::{Digest, Hasher, copy_hashed};
use crate::event::input::printable;
use crate::event::origin::{Kind, Origin};
use crate::run::workspace::Filling;
use crate::run::workspace::folder;
use crate::run::workspace::found::{Found, Part, Parts};
use crate::sandbox::{Body, Placement};
use crate::workflow::manifest::{Content, Entry};
use crate::workflow::mode::Mode;
use crate::workflow::path::WorkspacePath;

/// A file with its size.
struct Sized {
    placement: Placement,
    bytes: u64,
}

/// Reads, hashes and places everything. Where two entries name the same file, the more exact one counts.
pub(super) fn assemble(found: Vec<(Entry, Found)>) -> Result<Filling> {
    let mut files: BTreeMap<WorkspacePath, Placement> = BTreeMap::new();
    let mut origins = Vec::new();
    for (entry, found) in found {
        let (placed, origin) = place(&entry, found)?;
        origins.push(origin);
        files.extend(placed.into_iter().map(|file| (file.path.clone(), file)));
    }
    for path in files.keys() {
        let parent =
            path.parents().find(|parent| WorkspacePath::parse(parent).is_ok_and(|p| files.contains_key(&p)));
        if let Some(parent) = parent {
            let message = format!("`{parent}` of the manifest is a file, and `{path}` lies under it");
            return Err(Diagnostic::new("run::manifest", message).help(
                "two entries bring it: give one of them another place, or leave it out with `ignore`",
            ));
        }
    }
    Ok(Filling { files: files.into_values().collect(), origins })
}

fn place(entry: &Entry, found: Found) -> Result<(Vec<Placement>, Origin)> {
    let Found { from, reference, commit, run, content } = found;
    let (parts, whole, links_left_out) = match content {
        Parts::Nothing => (Vec::new(), Whole::Several, 0),
        Parts::One(part) => (vec![part], Whole::One, 0),
        Parts::Several(parts) => (parts, Whole::Several, 0),
        Parts::Tree(tree) => {
            let opened = folder::open(&tree)?;
            (opened.parts, Whole::Several, opened.links)
        }
    };
    if whole == Whole::Several && !entry.path.is_folder() {
        let message = format!("`{}` of the manifest is written as a file, and gets a folder", entry.path);
        return Err(Diagnostic::new("run::manifest", message).help("end its path in `/`"));
    }
    let mut files = parts.into_iter().map(|part| file(entry, part)).collect::<Result<Vec<_>>>()?;
    files.sort_by(|left, right| left.placement.path.cmp(&right.placement.path));
    let bytes = files.iter().map(|file| file.bytes).sum();
    let origin = Origin {
        path: entry.path.to_string(),
        kind: kind(&entry.content),
        from,
        reference,
        commit,
        run,
        files: files.len() as u64,
        bytes,
        links_left_out,
        sha256: digest(entry, &files, whole),
    };
    Ok((files.into_iter().map(|file| file.placement).collect(), origin))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whole {
    One,
    Several,
}

fn file(entry: &Entry, part: Part) -> Result<Sized> {
    let path = if entry.path.is_folder() { join(&entry.path, &part.name)? } else { entry.path.clone() };
    let (digest, bytes) = measure(entry, &part)?;
    let usual = part.program.then_some(Mode::PROGRAM);
    let placement = Placement {
        path,
        body: part.body,
        access: entry.access,
        mode: entry.mode.or(usual),
        digest: Some(digest),
    };
    Ok(Sized { placement, bytes })
}

fn measure(entry: &Entry, part: &Part) -> Result<(Digest, u64)> {
    let unreadable = |error: std::io::Error| {
        let message = match &part.body {
            Body::File(path) => format!("cannot read {}", printable(path.as_os_str())),
            Body::Bytes(_) => "cannot read the text of the script".to_owned(),
        };
        Diagnostic::new("run::manifest", message)
            .cause(error)
            .help(format!("`{}` of the manifest names it", entry.path))
    };
    match (&part.body, &part.digest) {
        (Body::Bytes(bytes), digest) => {
            Ok((digest.clone().unwrap_or_else(|| Digest::of(bytes)), bytes.len() as u64))
        }
        (Body::File(path), Some(digest)) => Ok((digest.clone(), path.metadata().map_err(unreadable)?.len())),
        (Body::File(path), None) => {
            let mut file = File::open(path).map_err(unreadable)?;
            copy_hashed(&mut file, &mut std::io::sink()).map_err(unreadable)
        }
    }
}

/// Of one file its own hash; of several that of their list, as `sha256sum` prints it.
fn digest(entry: &Entry, files: &[Sized], whole: Whole) -> Digest {
    let known = |file: &Sized| file.placement.digest.clone();
    if whole == Whole::One {
        return files.first().and_then(known).unwrap_or_else(|| Digest::of(""));
    }
    let mut hasher = Hasher::default();
    for file in files {
        let path = file.placement.path.as_str();
        let path = path.strip_prefix(entry.path.as_str()).unwrap_or(path);
        let digest = known(file).unwrap_or_else(|| Digest::of(""));
        // A hasher takes everything.
        let _ = writeln!(hasher, "{digest}  {path}");
    }
    hasher.finish()
}

fn kind(content: &Content) -> Kind {
    match content {
        Content::Input => Kind::Input,
        Content::File(_) => Kind::File,
        Content::Dir(_) => Kind::Dir,
        Content::Text(_) => Kind::Text,
        Content::Bytes(_) => Kind::Bytes,
        Content::Url(_) => Kind::Url,
        Content::Git(_) => Kind::Git,
        Content::Artifacts(_) => Kind::Artifacts,
    }
}

fn join(folder: &WorkspacePath, name: &str) -> Result<WorkspacePath> {
    let path = format!("{}/{name}", folder.as_str().trim_end_matches('/'));
    WorkspacePath::parse(&path).map_err(|why| {
        Diagnostic::new("run::manifest", format!("the file `{}` {why}", printable(path.as_ref())))
            .help("rename it, or take it out of the folder")
    })
}
