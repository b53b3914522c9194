//! What file events say: which folders have changed.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use notify::event::{AccessKind, AccessMode, CreateKind, ModifyKind, RemoveKind};
use notify::{Event, EventKind};
use tokio::sync::Notify;

use crate::trigger::drop_folder::armed::Armed;
use crate::trigger::drop_folder::scope::{Depth, Scope};

/// Folders that changed since the last look. However many events come, it holds so many folders and no more.
#[derive(Debug)]
pub struct Dirty {
    inbox: PathBuf,
    bound: usize,
    marks: Mutex<Marks>,
    armed: Mutex<Armed>,
    notify: Notify,
}

/// What was marked.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Marks {
    /// What has to be looked at.
    pub(super) scope: Scope,
    /// Whether the watches are what they are thought to be.
    pub(super) watches: Watches,
}

/// What is known about the watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Watches {
    /// They stand.
    Standing,
    /// Events were lost, and with them the news of folders that came and went.
    Lost,
}

impl Marks {
    fn none() -> Self {
        Self { scope: Scope::none(), watches: Watches::Standing }
    }
}

impl Dirty {
    /// Of the inbox at that path; more than `bound` folders at once are taken for the whole inbox.
    pub(super) fn new(inbox: &Path, bound: usize) -> Self {
        Self {
            inbox: inbox.to_owned(),
            bound,
            marks: Mutex::new(Marks::none()),
            armed: Mutex::default(),
            notify: Notify::new(),
        }
    }

    /// Waits for the next hint. Hints given while nobody waited count as one.
    pub async fn hint(&self) {
        self.notify.notified().await;
    }

    /// What was marked since the last time.
    pub(super) fn take(&self) -> Marks {
        std::mem::replace(&mut self.marks(), Marks::none())
    }

    /// The folders that are watched. The guard must not be held while a watch is set: notify's thread waits for it.
    pub(super) fn armed(&self) -> MutexGuard<'_, Armed> {
        self.armed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs on notify's own thread, which drops events when it is kept waiting: it only takes notes.
    pub fn mark(&self, event: &notify::Result<Event>) {
        match event {
            Ok(event) if is_reading(event.kind) => return,
            Ok(event) if event.need_rescan() || event.paths.is_empty() => self.lose(),
            Ok(event) => event.paths.iter().for_each(|path| self.touch(path, event.kind)),
            Err(error) if error.paths.is_empty() => self.lose(),
            Err(error) => error.paths.iter().for_each(|path| self.touch(path, EventKind::Any)),
        }
        self.notify.notify_one();
    }

    fn marks(&self) -> MutexGuard<'_, Marks> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lose(&self) {
        *self.marks() = Marks { scope: Scope::All, watches: Watches::Lost };
    }

    fn touch(&self, path: &Path, kind: EventKind) {
        let Ok(path) = path.strip_prefix(&self.inbox) else {
            self.marks().scope = Scope::All;
            return;
        };
        if may_move_a_folder(kind) {
            // The look at the folder above, marked next, does not rely on its watch and looks at all of it.
            self.armed().doubt(path);
        }
        let mut marks = self.marks();
        marks.scope.add(path.parent().unwrap_or(path), Depth::Entries);
        if marks.scope.count().is_some_and(|folders| folders > self.bound) {
            marks.scope = Scope::All;
        }
    }
}

/// Reading is no change, and a scan of ours reads.
fn is_reading(kind: EventKind) -> bool {
    matches!(kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write))
}

/// Whether a folder may have come or gone under that name, and with it what is watched.
fn may_move_a_folder(kind: EventKind) -> bool {
    !matches!(
        kind,
        EventKind::Access(_)
            | EventKind::Create(CreateKind::File)
            | EventKind::Remove(RemoveKind::File)
            | EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Metadata(_))
    )
}

#[cfg(test)]
mod tests {
    use notify::event::{DataChange, Flag, RenameMode};

    use super::*;
    use crate::trigger::drop_folder::scan::Id;

    const WRITTEN: EventKind = EventKind::Modify(ModifyKind::Data(DataChange::Any));
    const MOVED: EventKind = EventKind::Modify(ModifyKind::Name(RenameMode::To));

    fn dirty(events: impl IntoIterator<Item = (EventKind, &'static str)>) -> Dirty {
        let dirty = Dirty::new(Path::new("/inbox"), 2);
        for (kind, path) in events {
            dirty.mark(&Ok(Event::new(kind).add_path(path.into())));
        }
        dirty
    }

    fn entries(folders: &[&str]) -> Scope {
        let mut scope = Scope::none();
        for folder in folders {
            scope.add(Path::new(folder), Depth::Entries);
        }
        scope
    }

    #[test]
    fn an_event_marks_the_folder_it_happened_in() {
        let dirty =
            dirty([(WRITTEN, "/inbox/a/1.csv"), (WRITTEN, "/inbox/a/2.csv"), (WRITTEN, "/inbox/3.csv")]);
        assert_eq!(dirty.take(), Marks { scope: entries(&["a", ""]), watches: Watches::Standing });
        assert_eq!(dirty.take(), Marks::none());
    }

    #[test]
    fn reading_marks_nothing() {
        let read = EventKind::Access(AccessKind::Open(AccessMode::Any));
        assert_eq!(dirty([(read, "/inbox/a/1.csv")]).take(), Marks::none());
    }

    #[test]
    fn more_folders_than_fit_are_everything() {
        let paths = ["/inbox/a/1.csv", "/inbox/b/1.csv", "/inbox/c/1.csv", "/inbox/d/1.csv"];
        let dirty = dirty(paths.map(|path| (WRITTEN, path)));
        assert_eq!(dirty.take(), Marks { scope: Scope::All, watches: Watches::Standing });
    }

    #[test]
    fn lost_events_and_errors_without_a_path_are_everything_and_new_watches() {
        let lost = || Marks { scope: Scope::All, watches: Watches::Lost };
        let dirty = dirty([]);
        dirty.mark(&Ok(Event::new(EventKind::Other).set_flag(Flag::Rescan)));
        assert_eq!(dirty.take(), lost());
        dirty.mark(&Err(notify::Error::generic("no path")));
        assert_eq!(dirty.take(), lost());
        dirty.mark(&Err(notify::Error::generic("a path").add_path("/inbox/a/b".into())));
        assert_eq!(dirty.take().scope, entries(&["a"]));
    }

    #[test]
    fn a_folder_that_moved_is_watched_no_longer() {
        let id = |inode| Id { device: 1, inode };
        let dirty = dirty([]);
        dirty.armed().insert(Path::new("a"), id(1));
        dirty.armed().insert(Path::new("a/b"), id(2));
        dirty.mark(&Ok(Event::new(WRITTEN).add_path("/inbox/a".into())));
        assert!(dirty.armed().holds(Path::new("a"), id(1)));
        dirty.mark(&Ok(Event::new(MOVED).add_path("/inbox/a".into())));
        assert!(!dirty.armed().holds(Path::new("a"), id(1)) && !dirty.armed().holds(Path::new("a/b"), id(2)));
    }
}
