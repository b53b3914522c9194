//! No sandbox: files in a folder of the host's own, and no commands at all.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use async_trait::async_trait;
use bytes::Bytes;

use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::{RunId, copy_hashed};
use crate::event::isolation::Isolation;
use crate::sandbox::collect::{Ahead, collect};
use crate::sandbox::exact;
use crate::sandbox::folders::Folders;
use crate::sandbox::helper::Process;
use crate::sandbox::{
    Body, Caps, Collected, Command, Engine, Entry, EntryKind, Executed, Placed, Placement, Progress,
    ReadyImage, Sandbox, SandboxError, Spec, Stdio,
};
use crate::workflow::image::Image;
use crate::workflow::manifest::Access;
use crate::workflow::path::WorkspacePath;
use crate::workflow::units::show_size;
use crate::workflow::view::Artifact;

/// Where files of such sandboxes are, in the project's state.
const FOLDER: &str = "none";
/// The workspace in a sandbox's folder.
const WORKSPACE: &str = "workspace";

/// Sandboxes without commands.
#[derive(Debug)]
pub struct NoSandbox {
    folders: Folders,
}

impl NoSandbox {
    /// Their files are kept under `state` while they last.
    pub fn open(state: &Path) -> Result<Self> {
        Ok(Self { folders: Folders::new(state.join(FOLDER))? })
    }
}

#[async_trait]
impl Engine for NoSandbox {
    async fn prepare(&self, _: &Image, _: &dyn Progress) -> Result<ReadyImage> {
        Ok(ReadyImage::none("none"))
    }

    async fn start(&self, run: &RunId, _: &ReadyImage, spec: &Spec) -> Result<Arc<dyn Sandbox>> {
        let folder = self.folders.make(run)?;
        Ok(Arc::new(Files::new(folder, spec.limits.disk)))
    }

    async fn sweep(&self) -> Result<usize> {
        Ok(self.folders.sweep(|folder| fs::remove_dir_all(folder).is_ok()))
    }
}

/// The files of one run. Nothing but this makes any, so there are no links and no devices among them.
struct Files {
    folder: PathBuf,
    isolation: Isolation,
    /// Bytes they may have together.
    room: u64,
    kept: Mutex<Kept>,
    removed: AtomicBool,
}

#[derive(Default)]
struct Kept {
    bytes: u64,
    read_only: BTreeSet<WorkspacePath>,
}

impl Files {
    fn new(folder: PathBuf, room: u64) -> Self {
        let isolation = Isolation {
            engine: "none".to_owned(),
            network: "none".to_owned(),
            read_only_root: true,
            weaker: vec!["no commands run; files are handled by Tidemill itself".to_owned()],
            ..Isolation::default()
        };
        Self { folder, isolation, room, kept: Mutex::default(), removed: AtomicBool::new(false) }
    }

    fn at(&self, path: &WorkspacePath) -> PathBuf {
        self.folder.join(WORKSPACE).join(path.as_str().trim_end_matches('/'))
    }

    fn place(&self, file: &Placement) -> Result<u64, SandboxError> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.read_only.contains(&file.path) {
            return Err(SandboxError::Refused(file.path.clone(), "is read-only".to_owned()));
        }
        let size = file.body.size().map_err(|why| SandboxError::Refused(file.path.clone(), why))?;
        let target = self.at(&file.path);
        let before = fs::metadata(&target).map_or(0, |data| data.len());
        if kept.bytes.saturating_sub(before) + size > self.room {
            return Err(SandboxError::Refused(
                file.path.clone(),
                "does not fit: the workspace is full".to_owned(),
            ));
        }
        write(file, &target).map_err(|error| {
            SandboxError::Refused(file.path.clone(), format!("cannot be written: {error}"))
        })?;
        kept.bytes = kept.bytes.saturating_sub(before) + size;
        if file.access == Access::ReadOnly {
            kept.read_only.insert(file.path.clone());
        }
        Ok(size)
    }

    /// An open file of at most `limit` bytes.
    fn open(&self, path: &WorkspacePath, limit: u64) -> Result<File, SandboxError> {
        let target = self.at(path);
        let refused = |why: String| SandboxError::Refused(path.clone(), why);
        match fs::metadata(&target) {
            Ok(data) if data.is_dir() => Err(refused("is a folder".to_owned())),
            Ok(data) if data.len() > limit => {
                let (size, limit) = (show_size(data.len()), show_size(limit));
                Err(refused(format!("has {size}, and at most {limit} are taken")))
            }
            Ok(_) => File::open(&target).map_err(|error| refused(format!("cannot be read: {error}"))),
            Err(_) => Err(SandboxError::NotFound(path.clone())),
        }
    }

    fn take(&self, path: &WorkspacePath, limit: u64, into: &Path) -> Result<Artifact, SandboxError> {
        let mut from = self.open(path, limit)?;
        let file = into.join(path.as_str());
        let copying = || {
            file.parent().map_or(Ok(()), fs::create_dir_all)?;
            copy_hashed(&mut from, &mut File::create_new(&file)?)
        };
        let (digest, size) = { copying }()
            .map_err(|error| SandboxError::Refused(path.clone(), format!("cannot be kept: {error}")))?;
        Ok(Artifact { path: path.clone(), file, size, digest })
    }
}

fn write(file: &Placement, target: &Path) -> io::Result<()> {
    target.parent().map_or(Ok(()), fs::create_dir_all)?;
    match &file.body {
        Body::Bytes(bytes) => fs::write(target, bytes),
        Body::File(path) => {
            fs::copy(path, target)?;
            exact::check(target, file.digest.as_ref()).inspect_err(|_| drop(fs::remove_file(target)))
        }
    }
}

/// What stands at `path`; nothing when it has just gone away.
fn entry(path: &Path, root: &Path) -> Option<Entry> {
    let data = path.symlink_metadata().ok()?;
    let changed = data.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(Entry {
        kind: if data.is_dir() { EntryKind::Folder } else { EntryKind::File },
        size: data.len(),
        mode: data.mode() & 0o7777,
        changed: u64::try_from(changed.as_nanos()).unwrap_or(u64::MAX),
        path: path.strip_prefix(root).ok()?.as_os_str().as_bytes().to_vec(),
    })
}

fn no_commands() -> SandboxError {
    SandboxError::Unfit("this workflow has `sandbox = \"none\"`, so no commands run".to_owned())
}

#[async_trait]
impl Sandbox for Files {
    fn id(&self) -> &'static str {
        "none"
    }

    fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    async fn put(&self, files: Vec<Placement>) -> Result<Placed, SandboxError> {
        let mut placed = Placed::default();
        for file in &files {
            placed.bytes += self.place(file)?;
            placed.files += 1;
        }
        Ok(placed)
    }

    async fn exec(&self, _: &Command) -> Result<Executed, SandboxError> {
        Err(no_commands())
    }

    async fn start(&self, _: &Command, _: Stdio) -> Result<Process, SandboxError> {
        Err(no_commands())
    }

    async fn follow(&self, _: u32, _: u64) -> Result<Process, SandboxError> {
        Err(no_commands())
    }

    async fn list(&self, most: u64) -> Result<Vec<Entry>, SandboxError> {
        let root = self.folder.join(WORKSPACE);
        let (mut entries, mut folders) = (Vec::new(), vec![root.clone()]);
        while let Some(folder) = folders.pop() {
            // A workspace in which nothing was placed has no folder yet.
            for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
                let Some(entry) = entry(&path, &root) else { continue };
                if entries.len() as u64 >= most {
                    return Err(SandboxError::Unfit(format!("holds more than {most} entries")));
                }
                if entry.kind == EntryKind::Folder {
                    folders.push(path);
                }
                entries.push(entry);
            }
        }
        Ok(entries)
    }

    async fn read(&self, path: &WorkspacePath, limit: u64) -> Result<Bytes, SandboxError> {
        let mut bytes = Vec::new();
        let reading = self.open(path, limit)?.take(limit).read_to_end(&mut bytes);
        reading.map_err(|error| SandboxError::Refused(path.clone(), format!("cannot be read: {error}")))?;
        Ok(bytes.into())
    }

    async fn collect(
        &self,
        paths: &[WorkspacePath],
        caps: &Caps,
        into: &Path,
    ) -> Result<Collected, SandboxError> {
        collect(paths, caps, Ahead::NOTHING, async |path, limit| self.take(&path, limit, into)).await
    }

    async fn remove(&self) -> Result<()> {
        if self.removed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        fs::remove_dir_all(&self.folder).map_err(|error| {
            Diagnostic::new("sandbox::busy", format!("cannot remove {}", self.folder.display()))
                .cause(error)
                .help("the next start of tidemill removes it")
        })
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        if !*self.removed.get_mut() {
            // What cannot be removed now is found by the next sweep.
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Files").field(&self.folder).finish()
    }
}
