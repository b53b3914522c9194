//! Publishing: stage beside the outbox's folders, make durable, rename. There is never half a result or a second one.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, rename, renameat_with};
use rustix::io::Errno;

use crate::artifact::copy::{copy_checked, hash, io_error, remove, write_new};
use crate::artifact::name::folder_name;
use crate::artifact::receipt::Receipt;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::What;
use crate::event::id::RunId;
use crate::event::input::{InputFile, printable};
use crate::workflow::view::Artifact;

/// Where a run's artifacts go: `<outbox>/<workflow>/<name>/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The project's outbox; must exist.
    pub outbox: PathBuf,
    /// The workflow's name; its folder is made when it is missing.
    pub workflow: String,
    /// The folder's name, from [`folder_name`](crate::artifact::folder_name).
    pub name: String,
}

/// What stands in the outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// The folder.
    pub folder: PathBuf,
    /// The artifacts in it, in the order they were given.
    pub artifacts: Vec<PathBuf>,
    /// The receipt in it.
    pub receipt: PathBuf,
}

impl Destination {
    /// Of a run: the same for the same run, so that what it published is found again.
    pub fn of(outbox: PathBuf, workflow: &str, inputs: &[InputFile], run: &RunId) -> Self {
        Self { outbox, workflow: workflow.to_owned(), name: folder_name(inputs, run) }
    }
}

impl Published {
    /// The event that says so, with paths relative to the project's `root`.
    pub fn event(&self, root: &Path) -> What {
        let relative = |path: &Path| path.strip_prefix(root).unwrap_or(path).display().to_string();
        What::Published {
            folder: relative(&self.folder),
            artifacts: self.artifacts.iter().map(|path| relative(path)).collect(),
        }
    }
}

/// What a run published before its process died, when it came that far: its folder stands there with its receipt.
pub fn published_before(destination: &Destination, run: &RunId) -> Option<Published> {
    let folder = destination.outbox.join(&destination.workflow).join(&destination.name);
    let receipt = folder.join(Receipt::FILE);
    let there: Receipt = serde_json::from_slice(&fs::read(&receipt).ok()?).ok()?;
    if there.run != *run {
        return None;
    }
    // Flat or below `output/`, as they were laid out then.
    let placed = |path: &str| {
        let short = path.strip_prefix("output/").unwrap_or(path);
        [short, path].map(|path| folder.join(path)).into_iter().find(|path| path.is_file())
    };
    let artifacts = there.artifacts.iter().map(|artifact| placed(&artifact.path)).collect::<Option<_>>()?;
    Some(Published { folder, artifacts, receipt })
}

/// Open to all readers, as the outbox is for others.
const FOLDER_MODE: u32 = 0o755;

/// Publishes the artifacts and their receipt as one folder, and makes that durable.
///
/// Staged as `.staging-<run>` beside its final place, so that the rename is one step on one file system. A second
/// call for the same run finds the folder and returns it when it holds the same content. What a crash left staged is
/// replaced. On an error nothing is left behind. Blocking.
pub fn publish(destination: &Destination, artifacts: &[Artifact], receipt: &Receipt) -> Result<Published> {
    let parent = prepare(destination)?;
    let layout = layout(artifacts)?;
    let folder = parent.join(&destination.name);
    let published = Published {
        artifacts: layout.iter().map(|(_, path)| folder.join(path)).collect(),
        receipt: folder.join(Receipt::FILE),
        folder,
    };
    if fs::symlink_metadata(&published.folder).is_ok() {
        return finished(published, &layout, receipt);
    }
    let staging = parent.join(format!(".staging-{}", receipt.run));
    let staged =
        stage(&staging, &layout, receipt).and_then(|()| settle(&staging, &published.folder, &parent));
    match staged {
        Ok(Settled::Here) => Ok(published),
        Ok(Settled::Taken) => {
            remove(&staging)?;
            finished(published, &layout, receipt)
        }
        Err(error) => {
            // The error that stopped us is the one to tell; a leftover is replaced by the next try.
            let _ = remove(&staging);
            Err(error)
        }
    }
}

/// Removes what a run had staged that will not try again. Blocking.
pub fn forget_staged(destination: &Destination, run: &RunId) {
    // What cannot be removed now is hidden, and says by its name whose it was.
    let _ = remove(&destination.outbox.join(&destination.workflow).join(format!(".staging-{run}")));
}

/// Whether the final place was free.
enum Settled {
    Here,
    Taken,
}

/// The workflow's folder in the outbox, made when it is missing.
fn prepare(destination: &Destination) -> Result<PathBuf> {
    real_folder(&destination.outbox)?;
    for part in [&destination.workflow, &destination.name] {
        if part.is_empty() || part.starts_with('.') || part.contains(['/', '\0']) {
            return Err(Diagnostic::new(
                "artifact::bad_name",
                format!("`{}` is no name for a folder in the outbox", printable(part.as_ref())),
            ));
        }
    }
    let parent = destination.outbox.join(&destination.workflow);
    match make_folder(&parent) {
        Ok(()) => sync_folder(&destination.outbox)?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => real_folder(&parent)?,
        Err(error) => return Err(io_error(&error, &parent)),
    }
    Ok(parent)
}

fn real_folder(path: &Path) -> Result<()> {
    let shown = printable(path.as_os_str());
    let problem = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => return Ok(()),
        Ok(metadata) if metadata.is_symlink() => {
            "is a symbolic link, and links are not followed when publishing"
        }
        Ok(_) => "is not a folder",
        Err(error) if error.kind() == io::ErrorKind::NotFound => "does not exist",
        Err(error) => return Err(io_error(&error, path)),
    };
    Err(Diagnostic::new("artifact::outbox", format!("the outbox `{shown}` {problem}"))
        .help("make it a real folder, or set another `outbox` in tidemill.toml"))
}

/// Where each artifact goes in the folder: its workspace path, without `output/` when all of them are in there.
fn layout(artifacts: &[Artifact]) -> Result<Vec<(&Artifact, &str)>> {
    const COMMON: &str = "output/";
    let strip = artifacts.iter().all(|artifact| artifact.path.as_str().starts_with(COMMON));
    let place = |artifact| -> (&Artifact, &str) {
        let artifact: &Artifact = artifact;
        let path = artifact.path.as_str();
        let path = if strip { path.strip_prefix(COMMON).unwrap_or(path) } else { path };
        (artifact, path)
    };
    let layout: Vec<_> = artifacts.iter().map(place).collect();
    match layout.iter().find(|(_, path)| *path == Receipt::FILE) {
        Some((artifact, _)) => Err(Diagnostic::new(
            "artifact::receipt_taken",
            format!("`{}` would stand where the receipt goes", artifact.path),
        )
        .help("give the output another name than `receipt.json`")),
        None => Ok(layout),
    }
}

fn stage(staging: &Path, layout: &[(&Artifact, &str)], receipt: &Receipt) -> Result<()> {
    remove(staging)?;
    make_folder(staging).map_err(|error| io_error(&error, staging))?;
    let mut folders = vec![staging.to_path_buf()];
    for (artifact, path) in layout {
        for parent in artifact_parents(path) {
            let folder = staging.join(parent);
            match make_folder(&folder) {
                Ok(()) => folders.push(folder),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(io_error(&error, &folder)),
            }
        }
        copy_checked(artifact, &staging.join(path))?;
    }
    write_new(&staging.join(Receipt::FILE), receipt.to_json()?.as_bytes())?;
    folders.iter().rev().try_for_each(|folder| sync_folder(folder))
}

fn artifact_parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(end, _)| &path[..end])
}

/// The one step that makes it public.
fn settle(staging: &Path, folder: &Path, parent: &Path) -> Result<Settled> {
    let renamed = match renameat_with(CWD, staging, CWD, folder, RenameFlags::NOREPLACE) {
        // Some file systems cannot be asked not to replace. A plain rename there replaces nothing but an empty folder.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => rename(staging, folder),
        renamed => renamed,
    };
    match renamed {
        Ok(()) => {
            sync_folder(parent)?;
            Ok(Settled::Here)
        }
        Err(Errno::EXIST | Errno::NOTEMPTY) => Ok(Settled::Taken),
        Err(error) => Err(io_error(&error.into(), folder)),
    }
}

/// A folder that is already there: ours when it holds the same artifacts and a receipt of the same run.
fn finished(published: Published, layout: &[(&Artifact, &str)], receipt: &Receipt) -> Result<Published> {
    let same_run = fs::read(&published.receipt)
        .ok()
        .and_then(|bytes| serde_json::from_slice::<Receipt>(&bytes).ok())
        .is_some_and(|there| there.run == receipt.run);
    let same_content = layout.iter().all(|(artifact, path)| {
        hash(&published.folder.join(path)).is_ok_and(|there| there == artifact.digest)
    });
    if same_run && same_content {
        // The crash that made us come back may have come before this.
        if let Some(parent) = published.folder.parent() {
            sync_folder(parent)?;
        }
        return Ok(published);
    }
    let shown = printable(published.folder.as_os_str());
    Err(Diagnostic::new("artifact::taken", format!("`{shown}` exists already and holds something else"))
        .help("move that folder away and drop the input again; nothing in it was changed"))
}

fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(FOLDER_MODE).create(path)?;
    // The process may run with a tighter umask than the outbox's readers can live with.
    fs::set_permissions(path, fs::Permissions::from_mode(FOLDER_MODE))
}

fn sync_folder(path: &Path) -> Result<()> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(|error| io_error(&error, path))
}
