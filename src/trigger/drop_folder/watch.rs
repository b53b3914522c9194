//! Looks at the inbox and hears of its changes. What it hears may come late, twice, for nothing, or not at all.

mod arming;
mod machine;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::Watcher;

use crate::diagnostic::Diagnostic;
use crate::trigger::drop_folder::armed::Armed;
use crate::trigger::drop_folder::dirty::{Dirty, Watches};
use crate::trigger::drop_folder::looked::Looked;
use crate::trigger::drop_folder::polled::{Lack, Polled};
use crate::trigger::drop_folder::scan::{Root, Scan, root, scan};
use crate::trigger::drop_folder::scope::{Depth, Scope};
use arming::Arming;

pub use machine::Machine;

/// One inbox, each of its folders watched from the moment it was first looked at.
pub struct Watch {
    inbox: PathBuf,
    machine: Machine,
    dirty: Arc<Dirty>,
    /// The inbox that is watched; another one of the same name is silent until it is watched anew.
    root: Root,
    watcher: Option<Box<dyn Watcher + Send>>,
    polled: Polled,
    /// How many folders there were at the last look at everything.
    folders: usize,
}

impl Watch {
    /// So many changed folders are kept apart; more are the whole inbox.
    const FOLDERS: usize = 4096;

    /// For that inbox, an absolute path; nothing is watched yet.
    pub fn new(inbox: &Path) -> Self {
        Self::on(inbox, Machine::THIS)
    }

    /// The same on another machine.
    pub fn on(inbox: &Path, machine: Machine) -> Self {
        Self {
            inbox: inbox.to_owned(),
            machine,
            dirty: Arc::new(Dirty::new(inbox, Self::FOLDERS)),
            root: Root::Absent,
            watcher: None,
            polled: Polled::default(),
            folders: 0,
        }
    }

    /// What file events say, to wait for.
    pub fn hints(&self) -> Arc<Dirty> {
        Arc::clone(&self.dirty)
    }

    /// The folders of which no events come, relative to the inbox: they are to be asked for every few seconds.
    pub fn polled(&self) -> impl Iterator<Item = &Path> {
        self.polled.folders()
    }

    /// Looks at what is asked for and at what has changed by the hints; at everything when the inbox is another one
    /// than before or events were lost. `None` when there was nothing to look at. Reads folders, so it may take a while.
    pub fn look(&mut self, asked: Scope) -> Option<Scan> {
        let marks = self.dirty.take();
        let mut scope = marks.scope;
        scope.merge(asked);
        let root = root(&self.inbox);
        let no_watcher = self.watcher.is_none() && scope == Scope::All;
        if root != self.root || marks.watches == Watches::Lost || no_watcher {
            self.begin_anew(root);
            scope = Scope::All;
        }
        if scope.is_none() {
            return None;
        }
        let mut arming = Arming {
            inbox: &self.inbox,
            remote: self.machine.remote,
            dirty: &self.dirty,
            watcher: self.watcher.as_deref_mut(),
            polled: &mut self.polled,
        };
        let scan = scan(&self.inbox, scope, &mut arming);
        // When it went meanwhile or may not be read, the next look begins anew.
        self.root = if scan.root == root { root } else { Root::Absent };
        if scan.scope == Scope::All && scan.root != Root::Absent {
            self.polled.keep_read(&scan.looked);
            self.end_watches(&scan.looked);
            self.folders = scan.looked.folders();
        }
        Some(scan)
    }

    /// Warnings (`trigger::no_watch`, `trigger::polled`) about folders of which no events come, each cause once.
    pub fn warnings(&mut self) -> Vec<Diagnostic> {
        let folders = u64::try_from(self.folders).unwrap_or(u64::MAX);
        self.polled.news(&self.inbox, &(self.machine.limits)(), folders)
    }

    /// Folders that went unheard leave watches behind.
    fn end_watches(&mut self, looked: &Looked) {
        let gone = self.dirty.armed().keep(|folder| looked.has_read(folder, Depth::Entries));
        if let Some(watcher) = &mut self.watcher {
            for folder in gone {
                // It may have ended by itself.
                let _ = watcher.unwatch(&self.inbox.join(folder));
            }
        }
    }

    fn begin_anew(&mut self, root: Root) {
        self.root = root;
        self.watcher = None;
        self.polled.forget();
        *self.dirty.armed() = Armed::default();
        if root != Root::Absent {
            match (self.machine.watcher)(Arc::clone(&self.dirty)) {
                Ok(watcher) => self.watcher = Some(watcher),
                Err(error) => self.polled.unwatched(Path::new(""), Lack::Refused(error.to_string())),
            }
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Watch").field("inbox", &self.inbox).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use notify::{Config, Error, ErrorKind, EventHandler, RecursiveMode, WatcherKind};

    use super::*;
    use crate::trigger::drop_folder::limits::Limits;

    /// A system with two watches, which are given back when their folder is gone. It tells nothing.
    #[derive(Debug, Default)]
    struct Scarce(Vec<PathBuf>);

    impl Watcher for Scarce {
        fn new<F: EventHandler>(_: F, _: Config) -> notify::Result<Self> {
            Ok(Self::default())
        }

        fn watch(&mut self, path: &Path, _: RecursiveMode) -> notify::Result<()> {
            self.0.retain(|watched| watched.exists());
            if self.0.len() == 2 {
                return Err(Error::new(ErrorKind::MaxFilesWatch));
            }
            self.0.push(path.to_owned());
            Ok(())
        }

        fn unwatch(&mut self, path: &Path) -> notify::Result<()> {
            self.0.retain(|watched| watched != path);
            Ok(())
        }

        fn kind() -> WatcherKind {
            WatcherKind::NullWatcher
        }
    }

    const SCARCE: Machine = Machine {
        watcher: |_| Ok(Box::new(Scarce::default())),
        remote: |_| None,
        limits: || Limits { watches: Some(2), instances: None },
    };

    fn polled(watch: &Watch) -> Vec<&Path> {
        let mut folders: Vec<&Path> = watch.polled().collect();
        folders.sort_unstable();
        folders
    }

    fn paths(scan: &Scan) -> Vec<String> {
        let mut paths: Vec<String> = scan.found.iter().map(|found| found.path.display()).collect();
        paths.sort();
        paths
    }

    /// Files in `a` and in `b/deep`.
    fn inbox() -> tempfile::TempDir {
        let inbox = tempfile::tempdir().unwrap();
        for file in ["a/1.csv", "b/deep/2.csv"] {
            let path = inbox.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        inbox
    }

    #[test]
    fn only_what_has_no_watch_left_is_polled() {
        let inbox = inbox();
        let mut watch = Watch::on(inbox.path(), SCARCE);
        let scan = watch.look(Scope::All).unwrap();
        assert_eq!(paths(&scan), ["a/1.csv", "b/deep/2.csv"]);
        let told = watch.warnings();
        assert_eq!(told.len(), 1);
        assert!(told[0].advice().unwrap().contains("sudo sysctl fs.inotify.max_user_watches=524288"));

        // Folders are read in any order: one of the two is watched, and what is below the other is polled with it.
        let unwatched = polled(&watch).first().unwrap().to_path_buf();
        assert!(["a", "b", "b/deep"].iter().any(|name| unwatched == Path::new(name)), "{unwatched:?}");
        fs::write(inbox.path().join(&unwatched).join("3.csv"), "").unwrap();
        let mut scope = Scope::none();
        scope.add(&unwatched, Depth::Subtree);
        let found = paths(&watch.look(scope).unwrap());
        assert!(found.contains(&format!("{}/3.csv", unwatched.display())), "{found:?}");
        assert!(watch.look(Scope::All).is_some());
        assert!(watch.warnings().is_empty());
    }

    #[test]
    fn a_watch_that_is_given_back_is_used() {
        let inbox = inbox();
        fs::remove_dir_all(inbox.path().join("b/deep")).unwrap();
        let mut watch = Watch::on(inbox.path(), SCARCE);
        watch.look(Scope::All);
        let unwatched = polled(&watch)[0].to_owned();
        let other = if unwatched == Path::new("a") { "b" } else { "a" };
        fs::remove_dir_all(inbox.path().join(other)).unwrap();
        watch.look(Scope::All);
        assert!(polled(&watch).is_empty());
        assert_eq!(watch.warnings().len(), 0);
    }

    #[test]
    fn without_any_events_everything_is_polled_and_said_once() {
        let none = Machine { watcher: |_| Err(Error::generic("too many open files")), ..SCARCE };
        let inbox = inbox();
        let mut watch = Watch::on(inbox.path(), none);
        for warnings in [1, 0, 0] {
            watch.look(Scope::All);
            assert_eq!(polled(&watch), [Path::new("")]);
            assert_eq!(watch.warnings().len(), warnings);
        }
    }

    #[test]
    fn a_network_disk_is_polled() {
        let remote = Machine { remote: |_| Some("NFS"), ..SCARCE };
        let inbox = inbox();
        fs::remove_dir_all(inbox.path().join("b")).unwrap();
        let mut watch = Watch::on(inbox.path(), remote);
        watch.look(Scope::All);
        // The folder in it is on the same disk.
        assert_eq!(polled(&watch), [Path::new("")]);
        assert_eq!(watch.warnings()[0].code(), "trigger::polled");
        assert!(watch.look(Scope::none()).is_none());
    }
}
