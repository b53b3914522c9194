//! The files a script may read: those of its project or, for a pinned run, those of its bundle.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::Bundle;

/// A text larger than this is no prompt, schema or module.
const LARGEST: u64 = 1 << 20;

/// Where text comes from, and what was read so far.
#[derive(Debug)]
pub(super) struct Files {
    origin: Origin,
    /// Name = text; what a run is pinned to.
    read: Mutex<BTreeMap<String, String>>,
    /// Names that were asked for, whether they were there or not.
    asked: Mutex<BTreeSet<String>>,
}

#[derive(Debug)]
enum Origin {
    /// A project's root, and a script outside of it that was named on the command line.
    Disk { root: PathBuf, outside: Option<(String, PathBuf)> },
    /// Only what was read when the run was queued.
    Pinned(BTreeMap<String, String>),
}

impl Files {
    /// The files under `root`.
    pub(super) fn disk(root: &Path) -> Self {
        Self::new(Origin::Disk { root: root.to_owned(), outside: None })
    }

    /// The files under `root`, and the one at `path` under the name `name`.
    pub(super) fn with_outside(root: &Path, name: &str, path: PathBuf) -> Self {
        Self::new(Origin::Disk { root: root.to_owned(), outside: Some((name.to_owned(), path)) })
    }

    /// The files of a bundle.
    pub(super) fn pinned(bundle: &Bundle) -> Self {
        Self::new(Origin::Pinned(bundle.files.clone()))
    }

    fn new(origin: Origin) -> Self {
        Self { origin, read: Mutex::default(), asked: Mutex::default() }
    }

    /// Whether this is a pinned run's: what stands on the disk now does not matter.
    pub(super) fn is_pinned(&self) -> bool {
        matches!(self.origin, Origin::Pinned(_))
    }

    /// The text of a root-relative file; the error is a fragment such as "does not exist".
    pub(super) fn text(&self, name: &str) -> Result<String, String> {
        if let Some(text) = self.known(name) {
            return Ok(text);
        }
        self.ask(name);
        let text = match &self.origin {
            Origin::Pinned(files) => {
                files.get(name).cloned().ok_or("was not there when the run was queued")?
            }
            Origin::Disk { outside: Some((given, path)), .. } if given == name => read(path)?,
            Origin::Disk { .. } => read(&self.path(name)?)?,
        };
        let mut known = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(name.to_owned(), text.clone());
        Ok(text)
    }

    /// The text of a file that was read before.
    pub(super) fn known(&self, name: &str) -> Option<String> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.get(name).cloned()
    }

    /// Everything read so far.
    pub(super) fn all(&self) -> BTreeMap<String, String> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The names of all files and folders that were asked for, whether they were there or not.
    pub(super) fn asked(&self) -> BTreeSet<String> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn ask(&self, name: &str) {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
    }

    /// Whether a root-relative file exists, as far as this origin knows.
    pub(super) fn has(&self, name: &str) -> bool {
        match &self.origin {
            Origin::Pinned(files) => files.contains_key(name),
            Origin::Disk { .. } => self.path(name).is_ok_and(|path| path.is_file()),
        }
    }

    /// Where a root-relative file or folder stands on the disk; links that lead out of the root are refused.
    pub(super) fn path(&self, name: &str) -> Result<PathBuf, String> {
        let Origin::Disk { root, .. } = &self.origin else {
            return Err("is read from a pinned run".into());
        };
        self.ask(name);
        let path = root.join(name);
        let real = path.canonicalize().map_err(|error| because(&error))?;
        let home = root.canonicalize().map_err(|error| because(&error))?;
        if real.starts_with(home) { Ok(path) } else { Err("is a link that leads out of the project".into()) }
    }
}

/// Makes a path as a script writes it root-relative and plain; the error is a fragment such as "leaves the project".
pub(super) fn normal(text: &str) -> Result<String, String> {
    if text.starts_with('/') {
        return Err("is absolute; paths are relative to the project's folder".into());
    }
    if text.chars().any(char::is_control) {
        return Err("holds a control character".into());
    }
    let mut parts = Vec::new();
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." => return Err("leaves the project's folder".into()),
            part => parts.push(part),
        }
    }
    if parts.is_empty() {
        return Err("is empty".into());
    }
    Ok(parts.join("/"))
}

fn read(path: &Path) -> Result<String, String> {
    let about = std::fs::metadata(path).map_err(|error| because(&error))?;
    if !about.is_file() {
        return Err("is not a regular file".into());
    }
    let file = std::fs::File::open(path).map_err(|error| because(&error))?;
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| because(&error))?;
    if bytes.len() as u64 > LARGEST {
        return Err("is larger than 1 MiB".into());
    }
    String::from_utf8(bytes).map_err(|_| "is not UTF-8 text".into())
}

fn because(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "does not exist".into(),
        _ => format!("cannot be read: {error}"),
    }
}
