//! What a watch makes one believe: its looks, one after the other, folded into a view of the inbox.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::{NullWatcher, Watcher};
use tempfile::TempDir;
use tidemill::event::input::{Fingerprint, RawPath};
use tidemill::trigger::drop_folder::dirty::Dirty;
use tidemill::trigger::drop_folder::scan::{Alone, Root, Scan, Sight, scan};
use tidemill::trigger::drop_folder::scope::{Depth, Scope};
use tidemill::trigger::drop_folder::watch::{Machine, Watch};

use super::harness::soon;

/// A disk of this machine, which tells of changes.
pub(super) const DISK: Machine = Machine::THIS;

/// A network disk: no event comes, and that is known.
pub(super) const SHARE: Machine = Machine { watcher: silent, remote: |_| Some("NFS"), ..Machine::THIS };

/// A disk whose events are all lost, and nobody says so.
pub(super) const DEAF: Machine = Machine { watcher: silent, ..Machine::THIS };

#[expect(clippy::unnecessary_wraps, reason = "a machine's watcher is made so")]
fn silent(_: Arc<Dirty>) -> notify::Result<Box<dyn Watcher + Send>> {
    Ok(Box::new(NullWatcher))
}

/// What stands in the inbox, as far as one knows.
pub(super) type View = BTreeMap<RawPath, (Sight, Fingerprint)>;

/// An inbox, a watch that was set on it while it was empty, and what its looks have shown.
pub(super) struct Eyes {
    folder: TempDir,
    watch: Watch,
    hints: Arc<Dirty>,
    view: View,
    /// How many looks were at everything.
    pub(super) whole: usize,
}

impl Eyes {
    pub(super) fn on(machine: Machine) -> Self {
        Self::in_folder(machine, TempDir::with_prefix("tidemill-test-").unwrap())
    }

    pub(super) fn in_folder(machine: Machine, folder: TempDir) -> Self {
        fs::create_dir(folder.path().join("inbox")).unwrap();
        let watch = Watch::on(&folder.path().join("inbox"), machine);
        let hints = watch.hints();
        let mut eyes = Self { folder, watch, hints, view: View::new(), whole: 0 };
        eyes.reconcile();
        eyes
    }

    /// A path beside the inbox.
    pub(super) fn outside(&self, path: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(path)
    }

    /// A path in it.
    pub(super) fn inside(&self, path: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join("inbox").join(path)
    }

    /// Writes a file, making its folders.
    pub(super) fn put(&self, path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
        let path = self.inside(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// What is believed to stand at a path.
    pub(super) fn at(&self, path: impl AsRef<OsStr>) -> Option<(Sight, Fingerprint)> {
        self.view.get(&RawPath::new(path.as_ref())).copied()
    }

    /// How much is believed to stand there.
    pub(super) fn count(&self) -> usize {
        self.view.len()
    }

    /// A look at everything, as every `rescan`.
    pub(super) fn reconcile(&mut self) {
        self.look(Scope::All);
    }

    /// A look without a hint, as every two seconds: at what is polled, and at nothing where events come.
    pub(super) fn glance(&mut self) -> Option<Scan> {
        let mut scope = Scope::none();
        self.watch.polled().for_each(|folder| scope.add(folder, Depth::Subtree));
        self.look(scope)
    }

    /// The folders of which no events come.
    pub(super) fn polled(&self) -> usize {
        self.watch.polled().count()
    }

    /// Codes of what there is to warn of.
    pub(super) fn warned(&mut self) -> Vec<&'static str> {
        self.watch.warnings().iter().map(tidemill::diagnostic::Diagnostic::code).collect()
    }

    /// Until what is believed is what is true: by the hints alone, or by polling where there are none.
    pub(super) async fn see_all(&mut self) {
        soon(async {
            while self.view != self.truth() {
                if self.polled() == 0 {
                    self.hints.hint().await;
                }
                self.glance();
            }
        })
        .await;
    }

    /// Whether what is believed is what is true.
    pub(super) fn is_right(&self) -> bool {
        self.view == self.truth()
    }

    fn look(&mut self, scope: Scope) -> Option<Scan> {
        let scan = self.watch.look(scope)?;
        self.whole += usize::from(scan.scope == Scope::All);
        if scan.root != Root::Absent {
            let found: View = view(&scan);
            self.view.retain(|path, _| found.contains_key(path) || !scan.looked.covers(path.as_path()));
            self.view.extend(found);
        }
        Some(scan)
    }

    fn truth(&self) -> View {
        view(&scan(&self.folder.path().join("inbox"), Scope::All, &mut Alone))
    }
}

fn view(scan: &Scan) -> View {
    scan.found.iter().map(|found| (found.path.clone(), (found.sight, found.fingerprint))).collect()
}
