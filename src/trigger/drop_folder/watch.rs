//! A hint that the inbox changed. It may come late, twice, for nothing, or not at all.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use notify::event::{AccessKind, CreateKind, ModifyKind};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;

use crate::diagnostic::Diagnostic;
use crate::trigger::drop_folder::scan::Root;

/// Watches one inbox, and again when it was replaced.
#[derive(Debug)]
pub struct Watch {
    inbox: PathBuf,
    dirty: Arc<Dirty>,
    /// Which folder is watched; another one of the same name is silent until it is watched anew.
    armed: Option<(Root, RecommendedWatcher)>,
}

/// One flag for everything: however many events come, they say the same.
#[derive(Debug, Default)]
struct Dirty {
    notify: Notify,
    /// Some event said that folders came or that events were lost: the watches below may be incomplete.
    folders: AtomicBool,
}

impl Watch {
    /// For that inbox; nothing is watched yet.
    pub fn new(inbox: &Path) -> Self {
        Self { inbox: inbox.to_owned(), dirty: Arc::default(), armed: None }
    }

    /// Watches the folder that stands there now, unless that is the one already watched. Call it *before* a scan:
    /// what happens in between is then seen by one or the other.
    ///
    /// An error (`trigger::no_watch`, a warning) means that only scans notice changes.
    pub fn arm(&mut self, root: Root) -> Result<(), Diagnostic> {
        if root == Root::Absent {
            self.armed = None;
            return Ok(());
        }
        let lost = self.dirty.folders.swap(false, Ordering::Relaxed);
        if !lost && self.armed.as_ref().is_some_and(|(armed, _)| *armed == root) {
            return Ok(());
        }
        self.armed = None;
        let dirty = Arc::clone(&self.dirty);
        let armed = notify::recommended_watcher(move |event| dirty.mark(&event)).and_then(|mut watcher| {
            watcher.watch(&self.inbox, RecursiveMode::Recursive)?;
            Ok(watcher)
        });
        match armed {
            Ok(watcher) => {
                self.armed = Some((root, watcher));
                Ok(())
            }
            Err(error) => Err(Diagnostic::new(
                "trigger::no_watch",
                format!("file events of {} are not to be had; it is scanned instead", self.inbox.display()),
            )
            .warning()
            .cause(error)
            .help("files are found at the next scan (`watch.rescan`); where watches ran out, raise the limit: sysctl fs.inotify.max_user_watches=524288")),
        }
    }

    /// Waits for the next hint. Hints given while nobody waited count as one.
    pub async fn hint(&self) {
        self.dirty.notify.notified().await;
    }
}

impl Dirty {
    /// Runs on notify's own thread, which drops events when it is kept waiting: it only sets flags.
    fn mark(&self, event: &notify::Result<notify::Event>) {
        let folders = match event {
            // Reading is no change, and a scan of ours reads.
            Ok(event) if matches!(event.kind, EventKind::Access(AccessKind::Open(_))) => return,
            // A folder that came may hold folders that came before it was watched.
            Ok(event) => {
                event.need_rescan()
                    || matches!(
                        event.kind,
                        EventKind::Create(CreateKind::Folder) | EventKind::Modify(ModifyKind::Name(_))
                    )
            }
            Err(_) => true,
        };
        if folders {
            self.folders.store(true, Ordering::Relaxed);
        }
        self.notify.notify_one();
    }
}
