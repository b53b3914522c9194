//! The desk: keeps the ledger of what a look at the inbox has shown, and claims what is complete.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::clock::Clock;
use crate::config::{Project, Watch};
use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::{Digest, RunId};
use crate::event::input::{Fingerprint, InputChange, InputFile, RawPath};
use crate::event::state::InputState;
use crate::event::trigger::Trigger;
use crate::run::intake::WorkflowRoute;
use crate::run::intake::brim::Brim;
use crate::run::intake::notice::{Notice, Tell};
use crate::run::intake::{place, recover};
use crate::store::{Claim, NewRun, Store, Taken};
use crate::trigger::drop_folder::routes::Routes;
use crate::trigger::drop_folder::scan::{Root, Scan};
use crate::trigger::drop_folder::scope::Scope;
use crate::trigger::drop_folder::settle::{Settling, blocked};

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
    /// Why files that were complete could not be taken.
    refused: HashMap<RawPath, String>,
    known: Known,
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

/// What became of a file that was about to be taken.
enum Taking {
    Read(Fingerprint, Digest),
    Changed(String),
    Blocked(String),
    Gone,
}

impl Desk {
    /// Files are claimed in groups: one transaction each, and a crash concerns few.
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
        let routes = routes(&workflows)?;
        let settling = remember(&store, &project.config.watch, clock.elapsed()).await?;
        let brim = Brim::new(store.clone(), project.config.watch.max_pending, tell.clone());
        Ok(Self {
            inbox: project.inbox(),
            store,
            clock,
            workflows,
            routes,
            watch: project.config.watch.clone(),
            settling,
            refused: HashMap::new(),
            known: Known::Ledger,
            absent: false,
            ids: Ids::default(),
            brim,
            tell,
        })
    }

    /// From now on files are for these workflows.
    pub fn follow(&mut self, workflows: &[WorkflowRoute]) -> Result<()> {
        self.routes = routes(workflows)?;
        self.workflows = workflows.to_vec();
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

    /// Takes in what was found and claims every file that is complete. Gives how many runs were queued.
    pub async fn tick(&mut self, scan: &Scan) -> Result<usize> {
        self.known = Known::Doubtful;
        let queued = self.take_in(scan).await?;
        self.known = Known::Inbox;
        Ok(queued)
    }

    async fn take_in(&mut self, scan: &Scan) -> Result<usize> {
        self.note_root(scan.root);
        let observed = self.settling.observe(scan, &self.routes, self.clock.elapsed());
        for group in observed.changes.chunks(Self::CHANGES) {
            self.record(group).await?;
        }
        let mut queued = 0;
        for group in observed.ready.chunks(Self::GROUP) {
            match self.brim.reached().await? {
                Some(reason) => self.hold(group, &reason).await?,
                None => queued += self.take(group).await?,
            }
        }
        Ok(queued)
    }

    /// Leaves complete files where they are for now. They are looked at often, and recorded once.
    async fn hold(&mut self, ready: &[InputChange], reason: &str) -> Result<()> {
        let (now, mut held) = (self.clock.elapsed(), Vec::new());
        for change in ready {
            let (path, state) = (&change.path, InputState::Settling);
            let waits = self.settling.refused(path, change.fingerprint, state, reason.to_owned(), now);
            if self.refused.insert(path.clone(), reason.to_owned()).as_deref() != Some(reason) {
                held.push(waits);
            }
        }
        self.record(&held).await
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
            if matches!(change.state, InputState::Ignored | InputState::Blocked) {
                self.tell.say(Notice::Left {
                    path: change.path.clone(),
                    state: change.state,
                    reason: change.reason.clone().unwrap_or_default(),
                });
            }
        }
        Ok(())
    }

    /// Takes a group of complete files out of the inbox and queues their runs. Gives how many.
    async fn take(&mut self, ready: &[InputChange]) -> Result<usize> {
        let mut readable = Vec::with_capacity(ready.len());
        for change in ready {
            // Before anything is written: a file that may not be read stays where it is.
            match place::open(&self.inbox.join(change.path.as_path())) {
                Ok(_) => readable.push(change.clone()),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => self.refuse(change, InputState::Blocked, why(&error)).await?,
            }
        }
        let taken = self.store.ready(&readable).await?;
        let moves: Vec<(PathBuf, PathBuf, Fingerprint)> = readable
            .iter()
            .zip(&taken)
            .map(|(change, taken)| {
                let home = self.inbox.join(change.path.as_path());
                (home, self.store.folder().join(&taken.claimed_path), change.fingerprint)
            })
            .collect();
        let takings: Vec<Taking> = blocking(move || {
            moves.iter().map(|(home, claimed, version)| carry(home, claimed, *version)).collect()
        })
        .await?;
        let mut claims = Vec::new();
        let mut notices = Vec::new();
        for ((change, taken), taking) in readable.iter().zip(taken).zip(takings) {
            match taking {
                Taking::Read(fingerprint, digest) => {
                    let runs = self.runs_for(change, &taken, fingerprint, &digest).await?;
                    notices.push(Notice::Claimed {
                        path: change.path.clone(),
                        runs: runs.iter().map(|run| (run.workflow.clone(), run.id.clone())).collect(),
                    });
                    self.refused.remove(&change.path);
                    claims.push(Claim { input: taken.input, fingerprint, digest, runs });
                    self.settling.claimed(&change.path);
                }
                Taking::Changed(reason) => self.undo(change, &taken, InputState::Settling, reason).await?,
                Taking::Blocked(reason) => self.undo(change, &taken, InputState::Blocked, reason).await?,
                Taking::Gone => {
                    let reason = "it was taken out of the inbox while it was being claimed";
                    self.store.put_back(taken.input, InputState::Gone, reason).await?;
                    self.settling.claimed(&change.path);
                }
            }
        }
        self.store.claim(&claims).await?;
        for notice in notices {
            self.tell.say(notice);
        }
        Ok(claims.iter().map(|claim| claim.runs.len()).sum())
    }

    async fn runs_for(
        &mut self,
        change: &InputChange,
        taken: &Taken,
        fingerprint: Fingerprint,
        digest: &Digest,
    ) -> Result<Vec<NewRun>> {
        let at = self.clock.now();
        let mut runs = Vec::new();
        for matching in self.routes.matching(&change.path) {
            let Some(route) = self.workflows.iter().find(|route| route.workflow == matching.workflow) else {
                continue;
            };
            let id = self.ids.fresh(at, &self.store).await?;
            let bundle = route.bundle.clone();
            runs.push(NewRun {
                inputs: vec![InputFile {
                    path: change.path.clone(),
                    size: fingerprint.size,
                    digest: digest.clone(),
                }],
                input: Some(taken.input),
                ..NewRun::new(id, &route.workflow, Trigger::Drop, bundle, &route.model, at)
            });
        }
        Ok(runs)
    }

    /// Puts a file back that was moved, if it was, and has it wait again.
    async fn undo(
        &mut self,
        change: &InputChange,
        taken: &Taken,
        state: InputState,
        reason: String,
    ) -> Result<()> {
        let (inbox, path) = (self.inbox.clone(), change.path.clone());
        let claimed = self.store.folder().join(&taken.claimed_path);
        let mark = format!("again-{}", taken.input);
        let back = blocking(move || put_home(&claimed, &inbox, path.as_path(), &mark)).await?;
        if let Err(error) = back {
            // The ledger still says `ready`, so the next start tries again.
            let message = format!("cannot put {} back into the inbox", change.path.display());
            let warning = Diagnostic::new("watch::unmovable", message).cause(error).help(
                "the inbox must be writable for this user; the file is kept in .tidemill/claimed until the next start",
            );
            self.tell.say(Notice::Warned(warning.report()));
            // And it does not stand in the inbox, so that it is not looked for there.
            self.settling.claimed(&change.path);
            return Ok(());
        }
        self.store.put_back(taken.input, state, &reason).await?;
        self.refuse(change, state, reason).await
    }

    async fn refuse(&mut self, change: &InputChange, state: InputState, reason: String) -> Result<()> {
        let now = self.clock.elapsed();
        let refused = self.settling.refused(&change.path, change.fingerprint, state, reason.clone(), now);
        if self.refused.insert(change.path.clone(), reason.clone()) == Some(reason) {
            // It is tried every few seconds, and was told.
            return self.store.record(&[refused]).await.map(drop);
        }
        self.record(&[refused]).await
    }
}

/// The globs of all workflows.
fn routes(workflows: &[WorkflowRoute]) -> Result<Routes> {
    Routes::new(workflows.iter().flat_map(|route| {
        let workflow = route.workflow.as_str();
        route.globs.iter().map(move |glob| (workflow, glob.as_str()))
    }))
}

/// What the ledger knows of the files that stand in the inbox.
async fn remember(store: &Store, watch: &Watch, now: Duration) -> Result<Settling> {
    let mut settling = Settling::new(watch.settle, watch.rescan);
    let waiting = [InputState::Seen, InputState::Settling, InputState::Ignored, InputState::Blocked];
    for row in store.inputs(&waiting).await? {
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

/// Moves a file out of the inbox and reads it there, where nobody new can reach it.
fn carry(home: &Path, claimed: &Path, version: Fingerprint) -> Taking {
    if !place::stands(home, version) {
        return match home.symlink_metadata() {
            Ok(_) => Taking::Changed("it changed while it was being claimed".to_owned()),
            Err(_) => Taking::Gone,
        };
    }
    if let Err(error) = place::relocate(home, claimed) {
        return match error.kind() {
            std::io::ErrorKind::NotFound => Taking::Gone,
            _ => Taking::Blocked(why(&error)),
        };
    }
    match place::read_still(claimed) {
        // On another file system it is a copy, which was compared while it was made.
        Ok(Some((now, digest))) if now == version || now.device != version.device => {
            Taking::Read(now, digest)
        }
        Ok(_) => Taking::Changed("its writer went on while it was being claimed".to_owned()),
        Err(error) => Taking::Blocked(why(&error)),
    }
}

fn put_home(claimed: &Path, inbox: &Path, path: &Path, mark: &str) -> std::io::Result<()> {
    if claimed.symlink_metadata().is_ok() {
        place::put_back(claimed, inbox, path, mark)?;
    }
    if let Some(folder) = claimed.parent() {
        // Empty, or never made.
        let _ = std::fs::remove_dir(folder);
    }
    Ok(())
}

fn why(error: &std::io::Error) -> String {
    error.raw_os_error().map_or_else(|| error.to_string(), blocked)
}

/// Runs what waits for a disk where it holds nobody up.
pub(super) async fn blocking<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(act).await.map_err(|error| {
        Diagnostic::new("watch::broken", "looking at the inbox broke off inside tidemill").cause(error)
    })
}

/// Ids of runs queued in one second: four random characters are not enough for thousands of them.
#[derive(Debug, Default)]
struct Ids {
    second: i64,
    given: HashSet<RunId>,
}

impl Ids {
    async fn fresh(&mut self, at: Timestamp, store: &Store) -> Result<RunId> {
        loop {
            let id = RunId::new(at);
            if at.as_second() != self.second {
                let (start, _) = id.as_str().rsplit_once('-').unwrap_or_default();
                self.given = store.ids_from(start).await?.into_iter().collect();
                self.second = at.as_second();
            }
            if self.given.insert(id.clone()) {
                return Ok(id);
            }
        }
    }
}
