//! Folders of which no file events come, so that they are looked at every few seconds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::diagnostic::Diagnostic;
use crate::event::input::printable;
use crate::trigger::drop_folder::limits::Limits;
use crate::trigger::drop_folder::looked::Looked;
use crate::trigger::drop_folder::scope::Depth;

/// Folders relative to the inbox, each with all that is below it, and what was said about them.
#[derive(Debug, Default)]
pub(super) struct Polled {
    mounts: BTreeMap<PathBuf, &'static str>,
    unwatched: BTreeMap<PathBuf, Lack>,
    told: BTreeSet<Cause>,
}

/// Why a folder is not watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lack {
    /// No watch is left for this user.
    Limit,
    /// The system said no, in these words.
    Refused(String),
}

/// What is said once, until it has gone away.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    Limit,
    Refused(String),
    Mount(PathBuf),
}

impl Polled {
    /// That folder is on a file system of that kind; `None` on one that tells of all changes.
    pub(super) fn mounted(&mut self, folder: &Path, remote: Option<&'static str>) {
        match remote {
            Some(kind) => drop(self.mounts.insert(folder.to_owned(), kind)),
            None => drop(self.mounts.remove(folder)),
        }
    }

    /// That folder has a watch.
    pub(super) fn watched(&mut self, folder: &Path) {
        self.unwatched.remove(folder);
    }

    /// That folder has none.
    pub(super) fn unwatched(&mut self, folder: &Path, lack: Lack) {
        self.unwatched.insert(folder.to_owned(), lack);
    }

    /// Whether that folder lies in one that has no watch.
    pub(super) fn lies_in_unwatched(&self, folder: &Path) -> bool {
        !self.unwatched.is_empty()
            && folder.ancestors().skip(1).any(|above| self.unwatched.contains_key(above))
    }

    /// Whether that folder is looked at as one that has no watch, or as part of one.
    pub(super) fn covers(&self, folder: &Path) -> bool {
        self.unwatched.contains_key(folder) || self.lies_in_unwatched(folder)
    }

    /// The folders to look at.
    pub(super) fn folders(&self) -> impl Iterator<Item = &Path> {
        self.mounts.keys().chain(self.unwatched.keys()).map(PathBuf::as_path)
    }

    /// The whole inbox was looked at: folders that were not there are no matter any more.
    pub(super) fn keep_read(&mut self, looked: &Looked) {
        self.mounts.retain(|folder, _| looked.has_read(folder, Depth::Entries));
        self.unwatched.retain(|folder, _| looked.has_read(folder, Depth::Entries));
    }

    /// Everything is found out anew; what was said stays said.
    pub(super) fn forget(&mut self) {
        self.mounts.clear();
        self.unwatched.clear();
    }

    /// Warnings for what has not been said yet, or had gone away since. `folders` is how many there are in the inbox.
    pub(super) fn news(&mut self, inbox: &Path, limits: &Limits, folders: u64) -> Vec<Diagnostic> {
        let causes = self.causes();
        let fresh = causes.difference(&self.told).map(|cause| self.warning(cause, inbox, limits, folders));
        let warnings = fresh.collect();
        self.told = causes;
        warnings
    }

    fn causes(&self) -> BTreeSet<Cause> {
        let lacks = self.unwatched.values().map(|lack| match lack {
            Lack::Limit => Cause::Limit,
            Lack::Refused(words) => Cause::Refused(words.clone()),
        });
        lacks.chain(self.mounts.keys().cloned().map(Cause::Mount)).collect()
    }

    fn warning(&self, cause: &Cause, inbox: &Path, limits: &Limits, folders: u64) -> Diagnostic {
        match cause {
            Cause::Limit => {
                let told = self.lacking(inbox, &Lack::Limit);
                let allowed = limits.watches.map_or_else(String::new, |allowed| format!(" of {allowed}"));
                let help = format!("raise the limit: {}", limits.more_watches(folders));
                no_watch(&told, &format!("no watch{allowed} is left for this user"), help)
            }
            Cause::Refused(words) => {
                let told = self.lacking(inbox, &Lack::Refused(words.clone()));
                let help = format!("when too many programs watch files: {}", limits.more_instances());
                no_watch(&told, words, help)
            }
            Cause::Mount(folder) => {
                let kind = self.mounts.get(folder).copied().unwrap_or_default();
                let message = format!(
                    "{} is on {kind}, which does not tell of what other machines change; it is looked at every few seconds",
                    shown(inbox, folder)
                );
                Diagnostic::new("trigger::polled", message)
                    .warning()
                    .help("nothing needs to be done; on a disk of this machine files are noticed at once")
            }
        }
    }

    /// Names the folders that lack events in that way.
    fn lacking(&self, inbox: &Path, lack: &Lack) -> String {
        let mut folders = self.unwatched.iter().filter(|(_, why)| *why == lack).map(|(folder, _)| folder);
        let first = folders.next().map(|folder| shown(inbox, folder)).unwrap_or_default();
        match folders.count() {
            0 => first,
            1 => format!("{first} and one more folder"),
            more => format!("{first} and {more} more folders"),
        }
    }
}

fn no_watch(folders: &str, why: &str, help: String) -> Diagnostic {
    let message = format!(
        "file events of {folders} are not to be had: {why}; every few seconds is looked there instead"
    );
    Diagnostic::new("trigger::no_watch", message).warning().help(help)
}

fn shown(inbox: &Path, folder: &Path) -> String {
    let whole = folder.as_os_str().is_empty().then(|| inbox.to_owned());
    printable(whole.unwrap_or_else(|| inbox.join(folder)).as_os_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { watches: Some(8192), instances: Some(128) };

    fn news(polled: &mut Polled) -> Vec<String> {
        let news = polled.news(Path::new("/inbox"), &LIMITS, 9000);
        news.iter().map(|warning| warning.message().to_owned()).collect()
    }

    #[test]
    fn a_cause_is_said_once_and_again_after_it_went_away() {
        let mut polled = Polled::default();
        polled.unwatched(Path::new("a"), Lack::Limit);
        polled.unwatched(Path::new("b"), Lack::Limit);
        assert_eq!(
            news(&mut polled),
            [
                "file events of /inbox/a and one more folder are not to be had: no watch of 8192 is left for this user; \
              every few seconds is looked there instead"
            ]
        );
        polled.unwatched(Path::new("c"), Lack::Limit);
        polled.forget();
        polled.unwatched(Path::new("c"), Lack::Limit);
        assert!(news(&mut polled).is_empty());
        polled.watched(Path::new("c"));
        assert!(news(&mut polled).is_empty());
        polled.unwatched(Path::new("c"), Lack::Limit);
        assert_eq!(news(&mut polled).len(), 1);
    }

    #[test]
    fn a_network_disk_is_polled_and_named() {
        let mut polled = Polled::default();
        polled.mounted(Path::new("share"), Some("NFS"));
        polled.mounted(Path::new("disk"), None);
        assert_eq!(polled.folders().collect::<Vec<_>>(), [Path::new("share")]);
        let told = news(&mut polled);
        assert!(told.len() == 1 && told[0].starts_with("/inbox/share is on NFS"), "{told:?}");
        // Watched all the same: what this machine changes there is told.
        assert!(!polled.covers(Path::new("share")));
        polled.keep_read(&Looked::default());
        assert_eq!(polled.folders().count(), 0);
    }

    #[test]
    fn what_lies_in_an_unwatched_folder_is_looked_at_with_it() {
        let mut polled = Polled::default();
        polled.unwatched(Path::new("a"), Lack::Refused("no".to_owned()));
        assert!(polled.covers(Path::new("a")) && polled.covers(Path::new("a/b/c")));
        assert!(!polled.covers(Path::new("ab")) && !polled.covers(Path::new("")));
        assert!(polled.lies_in_unwatched(Path::new("a/b")) && !polled.lies_in_unwatched(Path::new("a")));
    }
}
