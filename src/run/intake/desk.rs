//! The desk: keeps the ledger of what a look at the inbox has shown, and claims what is complete.

mod take;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::config::{Project, Watch};
use crate::diagnostic::{Diagnostic, Result};
use crate::event::input::{InputChange, RawPath};
use crate::event::state::InputState;
use crate::run::intake::brim::Brim;
use crate::run::intake::finish::Putter;
use crate::run::intake::ids::Ids;
use crate::run::intake::notice::{Notice, Tell};
use crate::run::intake::{WorkflowRoute, recover};
use crate::store::Store;
use crate::trigger::drop_folder::links::Links;
use crate::trigger::drop_folder::loops::Loops;
use crate::trigger::drop_folder::routes::Routes;
use crate::trigger::drop_folder::scan::{Root, Scan};
use crate::trigger::drop_folder::scope::Scope;
use crate::trigger::drop_folder::settle::Settling;

/// Records and claims: one [`Desk::tick`] after each look.
#[derive(Debug)]
pub struct Desk {
    inbox: PathBuf,
    store: Store,
    clock: Arc<dyn Clock>,
    workflows: Vec<WorkflowRoute>,
    routes: Routes,
    watch: Watch,
    settling: Settling,
    links: Links,
    loops: Loops,
    putter: Arc<Putter>,
    /// Why files that were complete could not be taken.
    refused: HashMap<RawPath, String>,
    known: Known,
    /// Whether it is recorded that the files of these workflows are watched for.
    noted: bool,
    absent: bool,
    ids: Ids,
    brim: Brim,
    tell: Tell,
}

/// What is known of the files in the inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// What the ledger says; the inbox itself is still to be looked at.
    Ledger,
    /// What stands there.
    Inbox,
    /// A tick broke off, as on a full disk: neither may be true.
    Doubtful,
}

impl Desk {
    /// Parcels are claimed in groups: one transaction each, and a crash concerns few.
    const GROUP: usize = 64;

    /// Changes are recorded in groups.
    const CHANGES: usize = 1000;

    /// Starts with what the ledger knows.
    pub async fn open(
        project: &Project,
        store: Store,
        clock: Arc<dyn Clock>,
        workflows: Vec<WorkflowRoute>,
        tell: Tell,
    ) -> Result<Self> {
        let watch = project.config.watch.clone();
        let settling = remember(&store, &watch, clock.elapsed()).await?;
        let brim = Brim::new(store.clone(), watch.max_pending, tell.clone());
        let mut desk = Self {
            inbox: project.inbox(),
            putter: Arc::new(Putter::new(project.clone(), store.clone(), tell.clone())),
            links: Links::new(&project.inbox(), &watch.links_to),
            loops: Loops::new(watch.loop_limit),
            store,
            clock,
            workflows: Vec::new(),
            routes: Routes::default(),
            watch,
            settling,
            refused: HashMap::new(),
            known: Known::Ledger,
            noted: false,
            absent: false,
            ids: Ids::default(),
            brim,
            tell,
        };
        desk.set_workflows(workflows)?;
        Ok(desk)
    }

    /// Who puts its files away: one at a time, whoever asks.
    pub(super) fn putter(&self) -> Arc<Putter> {
        Arc::clone(&self.putter)
    }

    /// These workflows from now on; everything is looked at anew.
    pub fn set_workflows(&mut self, workflows: Vec<WorkflowRoute>) -> Result<()> {
        let drops = workflows.iter().flat_map(|route| {
            let workflow = route.workflow.as_str();
            route.drops.iter().map(move |drop| (workflow, drop))
        });
        self.routes = Routes::new(drops)?;
        self.workflows = workflows;
        self.noted = false;
        if self.known == Known::Inbox {
            self.known = Known::Ledger;
        }
        Ok(())
    }

    /// After a tick that broke off: begins anew with what the ledger says, and a file that was on its way goes back.
    pub async fn catch_up(&mut self) -> Result<()> {
        if self.known == Known::Doubtful {
            recover::undo_ready(&self.inbox, &self.store, &self.tell).await?;
            self.settling = remember(&self.store, &self.watch, self.clock.elapsed()).await?;
            self.known = Known::Ledger;
        }
        Ok(())
    }

    /// Takes in what was found and claims everything that is complete. Gives how many runs were queued.
    pub async fn tick(&mut self, scan: &Scan) -> Result<usize> {
        self.known = Known::Doubtful;
        let queued = self.take_in(scan).await?;
        self.known = Known::Inbox;
        Ok(queued)
    }

    async fn take_in(&mut self, scan: &Scan) -> Result<usize> {
        self.note_root(scan.root);
        let scan = self.links.resolve(scan, &self.routes);
        let observed = self.settling.observe(&scan, &self.routes, self.clock.elapsed());
        for group in observed.changes.chunks(Self::CHANGES) {
            self.record(group).await?;
        }
        if !observed.left.is_empty() {
            self.store.let_go(&observed.left).await?;
        }
        self.note_watched(&scan).await?;
        let mut queued = 0;
        for group in observed.parcels.chunks(Self::GROUP) {
            match self.brim.reached().await? {
                Some(reason) => self.hold(group, &reason).await?,
                None => queued += self.take(group).await?,
            }
        }
        Ok(queued)
    }

    /// Once everything was looked at, what comes later comes while it is watched for.
    async fn note_watched(&mut self, scan: &Scan) -> Result<()> {
        if self.noted || scan.scope != Scope::All || scan.root == Root::Absent {
            return Ok(());
        }
        let dropping = self.workflows.iter().filter(|route| !route.drops.is_empty());
        let workflows: Vec<String> = dropping.map(|route| route.workflow.clone()).collect();
        if !workflows.is_empty() {
            self.store.note_watched(&workflows).await?;
        }
        self.noted = true;
        Ok(())
    }

    /// When the next look is worth it, at the latest.
    pub fn due(&self) -> Option<Duration> {
        self.settling.due()
    }

    /// What is to be looked at when that time has come.
    pub fn due_folders(&self) -> Scope {
        if self.known != Known::Inbox {
            return Scope::All;
        }
        self.settling.due_folders(self.clock.elapsed())
    }

    fn note_root(&mut self, root: Root) {
        let absent = root == Root::Absent;
        if absent != self.absent {
            self.absent = absent;
            let inbox = self.inbox.clone();
            self.tell.say(if absent { Notice::InboxAbsent(inbox) } else { Notice::InboxBack(inbox) });
        }
    }

    async fn record(&self, changes: &[InputChange]) -> Result<()> {
        self.store.record(changes).await?;
        for change in changes {
            if matches!(change.state, InputState::Ignored | InputState::Blocked | InputState::Incomplete) {
                self.tell.say(Notice::Left {
                    path: change.path.clone(),
                    state: change.state,
                    reason: change.reason.clone().unwrap_or_default(),
                });
            }
        }
        Ok(())
    }
}

/// What the ledger knows of the files that stand in the inbox.
async fn remember(store: &Store, watch: &Watch, now: Duration) -> Result<Settling> {
    use InputState::{Blocked, Ignored, Incomplete, RootAbsent, Seen, Settling as Settles};
    let mut settling = Settling::new(watch.settle, watch.rescan);
    settling.watched(store.watched().await?);
    let mut rows = store.kept().await?;
    rows.extend(store.inputs(&[Seen, Settles, Ignored, Blocked, Incomplete, RootAbsent]).await?);
    for row in rows {
        let change = InputChange {
            path: row.path,
            fingerprint: row.fingerprint,
            state: row.state,
            reason: row.reason,
        };
        settling.remember(change, now);
    }
    Ok(settling)
}

/// Runs what waits for a disk where it holds nobody up.
pub(super) async fn blocking<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(act).await.map_err(|error| {
        Diagnostic::new("watch::broken", "looking at the inbox broke off inside tidemill").cause(error)
    })
}
