//! When a file is complete: it has been quiet for a while since the last change *we* saw, and what goes with it is there.
//!
//! A pure state machine: a scan and the clock's elapsed time go in, changes come out. The file's own times are only
//! compared, never read as times, since copying keeps old ones.

mod known;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::event::input::{Fingerprint, InputChange, RawPath, Role};
use crate::event::state::InputState;
use crate::trigger::drop_folder::doubt::Doubt;
use crate::trigger::drop_folder::existing::Existing;
use crate::trigger::drop_folder::gather::{Beside, Candidate, Gathered, Wait, gather};
use crate::trigger::drop_folder::judge::{Judged, judge};
use crate::trigger::drop_folder::order::arrange;
use crate::trigger::drop_folder::parcel::Parcel;
use crate::trigger::drop_folder::routes::{Route, Routes};
use crate::trigger::drop_folder::scan::{Found, Root, Scan};
use crate::trigger::drop_folder::scope::{Depth, Scope};
use crate::workflow::units::show_duration;
use known::{Kind, Known};

/// What is known about the files in the inbox.
#[derive(Debug)]
pub struct Settling {
    quiet: Duration,
    known: HashMap<RawPath, Known>,
    doubt: Doubt,
    existing: Existing,
}

/// What a scan has shown.
#[derive(Debug, Default)]
pub struct Observed {
    /// Changes for the ledger; files that are ready are not among them.
    pub changes: Vec<InputChange>,
    /// Files that were kept in the inbox and stand there no more.
    pub left: Vec<RawPath>,
    /// What is complete, in the order in which it is to be taken.
    pub parcels: Vec<Parcel>,
}

impl Settling {
    /// A file that could not be taken is tried again after this.
    pub const RETRY: Duration = Duration::from_secs(10);

    /// Files are complete after `quiet` without a change, where their drop says nothing else. An inbox that lies empty
    /// on another disk is doubted for as long as `patience`.
    pub fn new(quiet: Duration, patience: Duration) -> Self {
        Self { quiet, known: HashMap::new(), doubt: Doubt::new(patience), existing: Existing::default() }
    }

    /// These workflows were watched before: what came for them meanwhile came while nobody watched.
    pub fn watched(&mut self, workflows: impl IntoIterator<Item = String>) {
        self.existing.watched(workflows);
    }

    /// What the ledger knows from before: the file must still be quiet for the whole window.
    pub fn remember(&mut self, change: InputChange, now: Duration) {
        self.existing.remember(&change);
        self.known.insert(change.path.clone(), Known::remembered(change, now));
    }

    /// Takes in a scan made at `now`.
    pub fn observe(&mut self, scan: &Scan, routes: &Routes, now: Duration) -> Observed {
        let mut observed = Observed::default();
        if scan.root == Root::Absent {
            self.absent("the inbox is not there; it is waited for", &mut observed);
            return observed;
        }
        if self.doubts(scan, now) {
            self.absent("the inbox lies empty on another disk; it is waited for", &mut observed);
            return observed;
        }
        for found in &scan.found {
            self.take_in(found, routes, now, &mut observed);
        }
        self.miss(scan, &mut observed);
        if scan.scope == Scope::All {
            self.existing.begun();
        }
        self.gather(now, &mut observed);
        observed
    }

    /// A file was claimed: it is not in the inbox any more.
    pub fn claimed(&mut self, path: &RawPath) {
        self.known.remove(path);
    }

    /// A file was claimed and stays where it is: that version is not taken again.
    pub fn kept(&mut self, path: &RawPath, fingerprint: Fingerprint) {
        if let Some(known) = self.known.get_mut(path) {
            known.fingerprint = fingerprint;
            known.state = InputState::Claimed;
        }
    }

    /// A file that was ready could not be taken, or had changed: it waits again, for `wait` if it is blocked. Gives the
    /// change for the ledger.
    pub fn refused(&mut self, change: InputChange, wait: Duration, now: Duration) -> InputChange {
        let kind = self.known.get(&change.path).map(|known| known.kind.clone());
        let mut known = Known::remembered(change.clone(), now);
        known.kind = kind.unwrap_or(known.kind);
        if change.state == InputState::Blocked {
            known.retry = Some(now + wait);
        }
        self.known.insert(change.path.clone(), known);
        change
    }

    /// When a file may become ready, so that a scan is worth it.
    pub fn due(&self) -> Option<Duration> {
        self.known.values().filter_map(Known::due).min()
    }

    /// The folders of the files that are due at `now`.
    pub fn due_folders(&self, now: Duration) -> Scope {
        let mut scope = Scope::none();
        for (path, _) in self.known.iter().filter(|(_, known)| known.due().is_some_and(|due| due <= now)) {
            scope.add(path.as_path().parent().unwrap_or(Path::new("")), Depth::Entries);
        }
        scope
    }

    /// Whether the inbox looks like the folder on which its disk was mounted.
    fn doubts(&mut self, scan: &Scan, now: Duration) -> bool {
        let Root::Present(root) = scan.root else {
            return false;
        };
        let other_disk = |known: &Known| known.fingerprint.device != root.device;
        if scan.found.is_empty() && !self.known.is_empty() && self.known.values().all(other_disk) {
            return self.doubt.goes_on(now);
        }
        self.doubt.end();
        false
    }

    /// What waits in an inbox that is not there is not gone.
    fn absent(&mut self, reason: &str, observed: &mut Observed) {
        for (path, known) in &mut self.known {
            if known.waits() {
                known.enter(path, InputState::RootAbsent, Some(reason.to_owned()), observed);
            }
        }
    }

    fn take_in(&mut self, found: &Found, routes: &Routes, now: Duration, observed: &mut Observed) {
        let before = self.known.get(&found.path);
        let same = before.filter(|known| known.fingerprint == found.fingerprint);
        let is_through = same.is_some_and(Known::is_through);
        let judged = self.existing.judge(found, judge(found, routes), same.is_some(), before.is_none());
        let kind = Kind::of(&judged, self.quiet);
        if is_through {
            // What goes with it belongs to it all the same.
            self.known.entry(found.path.clone()).and_modify(|known| known.kind = kind);
            return;
        }
        let (state, reason) = match (judged, before) {
            (Judged::Left(state, reason), _) => (state, reason),
            // What it goes with is known when everything was looked at.
            (Judged::Company(..), Some(known)) if known.state == InputState::Ignored => {
                (known.state, known.reason.clone().unwrap_or_default())
            }
            (Judged::Company(..), _) => (InputState::Ignored, String::new()),
            (Judged::Input(_), None) => (InputState::Seen, kind.waits("noticed")),
            (Judged::Input(_), Some(known)) if same.is_none() && known.is_through() => {
                (InputState::Seen, kind.waits("it has changed since it was taken"))
            }
            // A batch that grows lacks what it lacked before, until all is looked at.
            (Judged::Input(_), Some(known)) if same.is_none() && known.state == InputState::Incomplete => {
                (known.state, known.reason.clone().unwrap_or_default())
            }
            (Judged::Input(_), Some(_)) if same.is_none() => {
                (InputState::Settling, kind.waits("it is still changing"))
            }
            (Judged::Input(_), Some(known)) => match known.state {
                InputState::RootAbsent => (InputState::Settling, kind.waits("the inbox is back")),
                // It was left before, and a workflow matches it now.
                InputState::Ignored => (InputState::Seen, kind.waits("a workflow matches it now")),
                InputState::Settling if known.kind == Kind::Left => {
                    (InputState::Settling, kind.waits("a workflow matches it now"))
                }
                InputState::Blocked if known.retry.is_none() => {
                    (InputState::Settling, kind.waits("it can be read again"))
                }
                state => (state, known.reason.clone().unwrap_or_default()),
            },
        };
        let refuses_again = before.is_some_and(|known| {
            known.state == InputState::Blocked
                && known.kind == Kind::Left
                && known.due().is_some_and(|due| now >= due)
        });
        let mut next = match before {
            // A folder that stays locked is the same refusal, not a new one, until it was tried again.
            Some(known) if same.is_some() && !refuses_again && known.goes_on_as(state) => known.clone(),
            _ => Known::new(found.fingerprint, now),
        };
        if state == InputState::Blocked && kind == Kind::Left {
            next.retry = next.retry.or(Some(now + Self::RETRY));
        }
        next.seen = now;
        next.kind = kind;
        let is_news =
            |known: &Known| known.state != state || known.reason.as_deref() != Some(reason.as_str());
        if !reason.is_empty() && before.is_none_or(is_news) {
            observed.changes.push(change(&found.path, found.fingerprint, state, &reason));
        }
        next.state = state;
        next.reason = Some(reason);
        self.known.insert(found.path.clone(), next);
    }

    /// What was known and is not in the scan is gone, unless the scan did not look there.
    fn miss(&mut self, scan: &Scan, observed: &mut Observed) {
        let found: HashSet<&RawPath> = scan.found.iter().map(|found| &found.path).collect();
        self.known.retain(|path, known| {
            let stays = found.contains(path) || !scan.looked.covers(path.as_path());
            if !stays && known.is_through() {
                observed.left.push(path.clone());
            } else if !stays {
                let reason = "it is not in the inbox any more";
                observed.changes.push(change(path, known.fingerprint, InputState::Gone, reason));
            }
            stays
        });
    }

    /// Finds out what is complete, and what the others wait for.
    fn gather(&mut self, now: Duration, observed: &mut Observed) {
        let mut beside = HashMap::new();
        let mut candidates = Vec::new();
        for (path, known) in &self.known {
            match &known.kind {
                Kind::Company(_) => {
                    let (fingerprint, since, seen) = (known.fingerprint, known.since, known.seen);
                    beside.insert(path, Beside { fingerprint, since, seen });
                }
                Kind::Input { takers, quiet, alone } => {
                    let Some(quiet) = known.rest(*quiet) else {
                        continue;
                    };
                    let candidate = Candidate {
                        path,
                        fingerprint: known.fingerprint,
                        since: known.since,
                        seen: known.seen,
                        quiet,
                        takers: takers.clone(),
                    };
                    // Most files wait for time alone, and need no further look.
                    if !*alone || candidate.is_settled() {
                        candidates.push(candidate);
                    }
                }
                Kind::Left | Kind::Remembered => {}
            }
        }
        let Gathered { parcels, waits } = gather(&candidates, &beside, self.quiet, now);
        observed.parcels = arrange(parcels);
        for (path, wait) in waits {
            if let Some(known) = self.known.get_mut(&path) {
                known.wait(&path, wait, observed);
            }
        }
        self.name_owners(observed);
    }

    /// Says of files that go with others with which, and of the rest that they are alone.
    fn name_owners(&mut self, observed: &mut Observed) {
        let mut owners = HashMap::new();
        for (path, known) in &self.known {
            if let Kind::Input { takers, alone: false, .. } = &known.kind {
                let company = takers.iter().flat_map(|route| route.company());
                owners.extend(company.map(|(_, naming)| (naming.beside(path), path.clone())));
            }
        }
        for (path, known) in &mut self.known {
            if let Kind::Company(company) = &known.kind {
                let reason = match owners.get(path) {
                    Some(owner) => belongs(company.role, owner),
                    None => orphan(company.role, &company.route),
                };
                known.enter(path, InputState::Ignored, Some(reason), observed);
            }
        }
    }
}

/// The reason of a file that goes with another.
fn belongs(role: Role, owner: &RawPath) -> String {
    let what = match role {
        Role::Sentinel => "it says that a file is complete",
        Role::Sidecar => "it brings the params of a file",
    };
    format!("{what}: `{}` (rule `{}`)", owner.display(), role.as_str())
}

/// The reason of a file that should go with another, which is not there.
fn orphan(role: Role, route: &Arc<Route>) -> String {
    let (option, workflow) = (role.option(), &route.workflow);
    format!("the file that it belongs to is not here (`{option}` of {workflow}; rule `{}`)", role.as_str())
}

fn change(path: &RawPath, fingerprint: Fingerprint, state: InputState, reason: &str) -> InputChange {
    InputChange { path: path.clone(), fingerprint, state, reason: Some(reason.to_owned()) }
}

fn complete_after(quiet: Duration) -> String {
    format!("complete after {} without a change", show_duration(quiet))
}

#[cfg(test)]
mod tests;
