//! The run's own copies of its inputs: nobody changes them while it works.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::fs::ioctl_ficlone;

use crate::diagnostic::{Diagnostic, Result, is_full};
use crate::event::id::{Digest, Hasher, copy_hashed};
use crate::event::input::{InputFile, RawPath, printable};
use crate::run::folder::{DISK_FULL, RunFolder};
use crate::workflow::view::Snapshot;

/// Copies `source` to `target`, hashing what is copied. Only regular files are taken; a link is followed, since
/// whoever named it may read it.
pub fn copy(source: &Path, target: &Path) -> Result<(Digest, u64)> {
    let shown = printable(source.as_os_str());
    let failed = |what: &str, error: std::io::Error| {
        let code = if is_full(&error) { DISK_FULL } else { "input::unreadable" };
        Diagnostic::new(code, format!("cannot {what} the input {shown}"))
            .cause(error)
            .help("check that the file exists, that this user may read it, and that the disk has room")
    };
    let kind = fs::metadata(source).map_err(|error| failed("read", error))?;
    if !kind.is_file() {
        return Err(Diagnostic::new("input::not_a_file", format!("{shown} is not a regular file"))
            .help("name a file; folders, pipes and devices are not taken"));
    }
    if let Some(folder) = target.parent() {
        RunFolder::make(folder)?;
    }
    let mut from = File::open(source).map_err(|error| failed("open", error))?;
    let mut to = File::create(target).map_err(|error| failed("copy", error))?;
    // Where the file system can, the copy shares its blocks with the original, and is only read.
    let copied = if ioctl_ficlone(&to, &from).is_ok() {
        let mut clone = File::open(target).map_err(|error| failed("copy", error))?;
        copy_hashed(&mut clone, &mut std::io::sink())
    } else {
        copy_hashed(&mut from, &mut to)
    };
    let copied = copied.map_err(|error| failed("copy", error))?;
    to.sync_all().map_err(|error| failed("copy", error))?;
    Ok(copied)
}

/// Takes the file a person named as the run's only input.
pub fn take(source: &Path, folder: &RunFolder) -> Result<InputFile> {
    let (digest, size) = copy(source, &folder.input(0))?;
    Ok(InputFile { path: RawPath::new(source), size, digest })
}

/// The run's copy of each input, made from `sources` (in the same order) where it does not stand yet, and checked against
/// what was queued.
pub fn snapshots(inputs: &[InputFile], sources: &[PathBuf], folder: &RunFolder) -> Result<Vec<Snapshot>> {
    let mut snapshots = Vec::new();
    for (index, input) in inputs.iter().enumerate() {
        let file = folder.input(index);
        let (digest, size) = match sources.get(index) {
            Some(source) => copy(source, &file)?,
            None => hash(&file, input)?,
        };
        if digest != input.digest {
            let shown = input.path.display();
            return Err(Diagnostic::new(
                "input::changed",
                format!("the input {shown} changed after it was queued"),
            )
            .help("a program still writes to it; drop it again when it is complete"));
        }
        snapshots.push(Snapshot { path: input.path.clone(), file, size, digest });
    }
    Ok(snapshots)
}

fn hash(file: &Path, input: &InputFile) -> Result<(Digest, u64)> {
    let failed = |error: std::io::Error| {
        let shown = input.path.display();
        Diagnostic::new("input::gone", format!("the run's copy of the input {shown} cannot be read"))
            .cause(error)
            .help("drop the file again")
    };
    let mut hasher = Hasher::default();
    let size = std::io::copy(&mut File::open(file).map_err(failed)?, &mut hasher).map_err(failed)?;
    Ok((hasher.finish(), size))
}
