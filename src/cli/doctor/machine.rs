//! This machine: folders, disk, clock.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rustix::fs::{Access, access};

use crate::cli::doctor::finding::Finding;
use crate::config::Project;
use crate::run::room::{Space, space};
use crate::workflow::units::show_size;

/// Below this, an input and its artifacts may not fit.
const LITTLE_ROOM: u64 = 5 << 30;
/// Below this, a run cannot be expected to end well.
const NO_ROOM: u64 = 512 << 20;

/// Can every folder be written, and do files move between them in one step?
pub(super) fn folders(project: &Project) -> Vec<Finding> {
    let folders = &project.config.folders;
    let state = project.state();
    let moved_between = [
        ("inbox", &folders.inbox),
        ("processed", &folders.processed),
        ("failed", &folders.failed),
        ("outbox", &folders.outbox),
        ("state", &state),
    ];
    let mut findings = Vec::new();
    let mut devices = Vec::new();
    for (name, folder) in moved_between {
        let path = project.root.join(folder);
        let stands = standing(&path);
        if let Err(error) = access(&stands, Access::WRITE_OK | Access::EXEC_OK) {
            findings.push(Finding::fail(
                name,
                format!("{} cannot be written: {error}", stands.display()),
                "give this user the right to write there, or name another folder under [folders] in tidemill.toml",
            ));
            continue;
        }
        devices.extend(fs::metadata(&stands).map(|data| (name, data.dev())));
        let note = if path.is_dir() { "" } else { " (made when it is needed)" };
        findings.push(Finding::ok(name, format!("{}{note}", path.display())));
    }
    let first = devices.first().map(|(_, device)| *device);
    let apart: Vec<&str> =
        devices.iter().filter(|(_, device)| Some(*device) != first).map(|(name, _)| *name).collect();
    if !apart.is_empty() {
        findings.push(Finding::warn(
            "file systems",
            format!("{} and inbox are not on one file system", apart.join(", ")),
            "a file is moved between them in one step only within a file system; put them on one",
        ));
    }
    findings
}

/// The nearest folder upwards that exists.
fn standing(path: &Path) -> PathBuf {
    path.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/")).to_owned()
}

/// Room on the disk that `path` is on.
pub(super) fn disk(what: &str, path: &Path) -> Option<Finding> {
    let Space { free, total } = space(path)?;
    let found = format!("{} of {} free at {}", show_size(free), show_size(total), path.display());
    let advice = "make room: kept files of old runs are in .tidemill/, images go with `docker image prune`";
    Some(match free {
        0..NO_ROOM => Finding::fail(what, found, advice),
        NO_ROOM..LITTLE_ROOM => Finding::warn(what, found, advice),
        _ => Finding::ok(what, found),
    })
}

/// A clock that was never set gives every run a wrong time and breaks TLS.
pub(super) fn clock(now: Timestamp) -> Option<Finding> {
    let earliest: Timestamp = "2026-01-01T00:00:00Z".parse().ok()?;
    Some(if now < earliest {
        Finding::fail(
            "clock",
            format!("it says {now}, before this program was made"),
            "set it, e.g. `timedatectl set-ntp true`",
        )
    } else {
        Finding::ok("clock", format!("{now:.0}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::finding::Level;

    #[test]
    fn a_clock_that_was_never_set_fails() {
        assert_eq!(clock(Timestamp::UNIX_EPOCH).unwrap().level, Level::Fail);
    }

    #[test]
    fn folders_that_do_not_exist_yet_are_judged_by_what_is_above_them() {
        let root = tempfile::tempdir().unwrap();
        let project = Project { root: root.path().to_owned(), config: crate::config::Config::default() };
        let findings = folders(&project);
        assert!(findings.iter().all(|finding| finding.level == Level::Ok), "{findings:?}");
        assert_eq!(findings.len(), 5);
    }
}
