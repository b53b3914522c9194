//! What a local sandbox is given: read-only files are laid out on the host and bound in; the rest is written by the
//! helper.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::sandbox::exact;
use crate::sandbox::local::system::Given;
use crate::sandbox::{Body, Placement};
use crate::workflow::manifest::Access;
use crate::workflow::mode::Mode;

/// Where laid-out files are in the sandbox's folder.
const GIVEN: &str = "given";
/// The mode of a folder that holds nothing but what was given.
const READ_ONLY: u32 = 0o555;
const WRITABLE: u32 = 0o755;

/// Lays the read-only files out under `folder`. Gives what is to be bound: a folder of nothing but read-only files as
/// a whole, other files one by one.
pub(super) fn lay_out(folder: &Path, files: &[Placement]) -> io::Result<Vec<Given>> {
    let root = folder.join(GIVEN);
    let mut writable: BTreeMap<String, bool> = BTreeMap::new();
    for file in files {
        for parent in file.path.parents() {
            *writable.entry(parent.to_owned()).or_default() |= file.access == Access::ReadWrite;
        }
    }
    let mut bound: Vec<String> = Vec::new();
    for file in files.iter().filter(|file| file.access == Access::ReadOnly) {
        let place = file.path.as_str().trim_end_matches('/');
        let target = root.join(place);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        put(&file.body, &target)?;
        exact::check(&target, file.digest.as_ref())?;
        if let Some(mode) = file.mode {
            give_mode(&target, mode)?;
        }
        let whole = file.path.parents().find(|parent| writable.get(*parent) == Some(&false));
        let what = whole.unwrap_or(place).to_owned();
        if !bound.contains(&what) {
            bound.push(what);
        }
    }
    // A folder that commands may rename would take what was given along: as a mount point it stays where it is.
    let mut pinned: Vec<String> = bound.iter().flat_map(|what| ancestors(what)).collect();
    pinned.sort();
    pinned.dedup();
    let at = |what: &str| Path::new("/workspace").join(what);
    let pinned = pinned.iter().map(|what| Given::Pinned(at(what)));
    bound.sort();
    Ok(pinned
        .chain(bound.iter().map(|what| Given::Bound { host: root.join(what), place: at(what) }))
        .collect())
}

/// The folders above a path, topmost first.
fn ancestors(path: &str) -> Vec<String> {
    path.match_indices('/').map(|(end, _)| path[..end].to_owned()).collect()
}

/// A link to the file where that is possible: a large input takes no time and no room.
fn put(body: &Body, target: &Path) -> io::Result<()> {
    // What an earlier try left may be a link to the very file: writing through it would empty that.
    match fs::remove_file(target) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    match body {
        Body::Bytes(bytes) => fs::write(target, bytes),
        Body::File(path) => fs::hard_link(path, target).or_else(|_| fs::copy(path, target).map(drop)),
    }
}

/// A link shares its mode with the file it was made from, which keeps its own: only a copy gets another.
fn give_mode(target: &Path, mode: Mode) -> io::Result<()> {
    let bits = mode.bits() & !0o222;
    if fs::metadata(target)?.permissions().mode() & 0o777 == bits {
        return Ok(());
    }
    let copy = target.with_extension("copy");
    fs::copy(target, &copy)?;
    fs::set_permissions(&copy, fs::Permissions::from_mode(bits))?;
    fs::rename(&copy, target)
}

/// Folders are bound read-only, so their modes matter to nobody but whoever removes them.
pub(super) fn clear(folder: &Path) -> io::Result<()> {
    let mut pending: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(folder) = pending.pop() {
        fs::set_permissions(&folder, fs::Permissions::from_mode(WRITABLE))?;
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                pending.push(entry.path());
            }
        }
    }
    fs::remove_dir_all(folder)
}

/// A folder of given files looks read-only from within as well.
pub(super) fn close(given: &[Given]) -> io::Result<()> {
    for given in given {
        if let Given::Bound { host, .. } = given
            && host.is_dir()
        {
            fs::set_permissions(host, fs::Permissions::from_mode(READ_ONLY))?;
        }
    }
    Ok(())
}
