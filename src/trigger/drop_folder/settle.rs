//! When a file is complete: it has been quiet for a while since the last change *we* saw.
//!
//! A pure state machine: a scan and the clock's elapsed time go in, changes come out. The file's own times are only
//! compared, never read as times, since copying keeps old ones.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::event::input::{Fingerprint, InputChange, RawPath};
use crate::event::state::InputState;
use crate::trigger::drop_folder::doubt::Doubt;
use crate::trigger::drop_folder::routes::Routes;
use crate::trigger::drop_folder::scan::{Found, Root, Scan, Sight};
use crate::trigger::drop_folder::scope::{Depth, Scope};
use crate::workflow::units::show_duration;

/// What is known about the files in the inbox.
#[derive(Debug)]
pub struct Settling {
    quiet: Duration,
    known: HashMap<RawPath, Known>,
    doubt: Doubt,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Known {
    fingerprint: Fingerprint,
    /// When it was last seen to change, or last refused.
    since: Duration,
    state: InputState,
    reason: Option<String>,
}

/// What a scan has shown.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Changes for the ledger; files that are ready are not among them.
    pub changes: Vec<InputChange>,
    /// Files that are complete, as changes to `ready`, oldest change first.
    pub ready: Vec<InputChange>,
}

impl Settling {
    /// A file that could not be taken is tried again after this.
    const RETRY: Duration = Duration::from_secs(10);

    /// Files are complete after `quiet` without a change. An inbox that lies empty on another disk is doubted for as
    /// long as `patience`.
    pub fn new(quiet: Duration, patience: Duration) -> Self {
        Self { quiet, known: HashMap::new(), doubt: Doubt::new(patience) }
    }

    /// What the ledger knows from before: the file must still be quiet for the whole window.
    pub fn remember(&mut self, change: InputChange, now: Duration) {
        let known =
            Known { fingerprint: change.fingerprint, since: now, state: change.state, reason: change.reason };
        self.known.insert(change.path, known);
    }

    /// Takes in a scan made at `now`.
    pub fn observe(&mut self, scan: &Scan, routes: &Routes, now: Duration) -> Observed {
        let mut observed = Observed::default();
        if scan.root == Root::Absent || self.doubts(scan, now) {
            return observed;
        }
        for found in &scan.found {
            self.take_in(found, routes, now, &mut observed);
        }
        self.miss(scan, &mut observed);
        observed.ready.sort_by_cached_key(|change| {
            (self.known.get(&change.path).map(|known| known.since), change.path.clone())
        });
        observed
    }

    /// A file was claimed: it is not in the inbox any more.
    pub fn claimed(&mut self, path: &RawPath) {
        self.known.remove(path);
    }

    /// A file that was ready could not be taken, or had changed: it waits again. Gives the change for the ledger.
    pub fn refused(
        &mut self,
        path: &RawPath,
        fingerprint: Fingerprint,
        state: InputState,
        reason: String,
        now: Duration,
    ) -> InputChange {
        let change = InputChange { path: path.clone(), fingerprint, state, reason: Some(reason) };
        self.remember(change.clone(), now);
        change
    }

    /// When a file may become ready, so that a scan is worth it.
    pub fn due(&self) -> Option<Duration> {
        self.known.values().filter_map(|known| self.due_of(known)).min()
    }

    /// The folders of the files that are due at `now`.
    pub fn due_folders(&self, now: Duration) -> Scope {
        let mut scope = Scope::none();
        for (path, _) in
            self.known.iter().filter(|(_, known)| self.due_of(known).is_some_and(|due| due <= now))
        {
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

    fn due_of(&self, known: &Known) -> Option<Duration> {
        match known.state {
            InputState::Seen | InputState::Settling | InputState::Ready => Some(known.since + self.quiet),
            InputState::Blocked => Some(known.since + Self::RETRY),
            _ => None,
        }
    }

    fn take_in(&mut self, found: &Found, routes: &Routes, now: Duration, observed: &mut Observed) {
        let before = self.known.get(&found.path);
        let (state, reason) = match judge(found, routes) {
            Some(judged) => judged,
            None => match before {
                None => (InputState::Seen, Some(self.waits("noticed"))),
                Some(known) if known.fingerprint != found.fingerprint => {
                    (InputState::Settling, Some(self.waits("it is still changing")))
                }
                Some(known) => match self.due_of(known) {
                    Some(due) if now >= due => {
                        observed.ready.push(InputChange {
                            path: found.path.clone(),
                            fingerprint: found.fingerprint,
                            state: InputState::Ready,
                            reason: Some(format!("quiet for {}", show_duration(self.quiet))),
                        });
                        return;
                    }
                    Some(_) => return,
                    // It was ignored before, and a workflow matches it now.
                    None => (InputState::Seen, Some(self.waits("a workflow matches it now"))),
                },
            },
        };
        let since = match before {
            // A folder that stays locked is the same refusal, not a new one, until it was tried again.
            Some(known)
                if known.fingerprint == found.fingerprint
                    && known.state == state
                    && self.due_of(known).is_none_or(|due| now < due) =>
            {
                known.since
            }
            _ => now,
        };
        let next = Known { fingerprint: found.fingerprint, since, state, reason: reason.clone() };
        if before.is_none_or(|known| known.state != state || known.reason != reason) {
            observed.changes.push(InputChange {
                path: found.path.clone(),
                fingerprint: found.fingerprint,
                state,
                reason,
            });
        }
        self.known.insert(found.path.clone(), next);
    }

    /// What was known and is not in the scan is gone, unless the scan did not look there.
    fn miss(&mut self, scan: &Scan, observed: &mut Observed) {
        let found: HashSet<&RawPath> = scan.found.iter().map(|found| &found.path).collect();
        self.known.retain(|path, known| {
            let stays = found.contains(path) || !scan.looked.covers(path.as_path());
            if !stays {
                observed.changes.push(InputChange {
                    path: path.clone(),
                    fingerprint: known.fingerprint,
                    state: InputState::Gone,
                    reason: Some("it is not in the inbox any more".to_owned()),
                });
            }
            stays
        });
    }

    fn waits(&self, why: &str) -> String {
        format!("{why}; complete after {} without a change", show_duration(self.quiet))
    }
}

/// The state that follows from what it is and how it is called; `None` for a file that some workflow is for.
pub fn judge(found: &Found, routes: &Routes) -> Option<(InputState, Option<String>)> {
    let ignored = |reason: String| Some((InputState::Ignored, Some(reason)));
    match found.sight {
        Sight::Ignored(rule) => ignored(format!("{} (rule `{}`)", rule.what, rule.name)),
        Sight::Other(kind) => ignored(format!("{kind}, not a regular file (rule `regular-files`)")),
        Sight::Unreadable(errno) => Some((InputState::Blocked, Some(blocked(errno)))),
        Sight::File if routes.matching(&found.path).is_empty() => {
            ignored("no workflow matches it (rule `no-workflow`)".to_owned())
        }
        Sight::File => None,
    }
}

/// The reason of a blocked input.
pub fn blocked(errno: i32) -> String {
    io::Error::from_raw_os_error(errno).to_string()
}

#[cfg(test)]
mod tests;
