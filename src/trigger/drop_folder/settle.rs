//! When a file is complete: it has been quiet for a while since the last change *we* saw.
//!
//! A pure state machine: a scan and the clock's elapsed time go in, changes come out. The file's own times are only
//! compared, never read as times, since copying keeps old ones.

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::Duration;

use crate::event::input::{Fingerprint, InputChange, RawPath};
use crate::event::state::InputState;
use crate::trigger::drop_folder::routes::Routes;
use crate::trigger::drop_folder::scan::{Found, Root, Scan, Sight};
use crate::workflow::units::show_duration;

/// What is known about the files in the inbox.
#[derive(Debug)]
pub struct Settling {
    quiet: Duration,
    known: HashMap<RawPath, Known>,
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

    /// Files are complete after `quiet` without a change.
    pub fn new(quiet: Duration) -> Self {
        Self {
            quiet,
            known: HashMap::new(),
        }
    }

    /// What the ledger knows from before: the file must still be quiet for the whole window.
    pub fn remember(&mut self, change: InputChange, now: Duration) {
        let known = Known {
            fingerprint: change.fingerprint,
            since: now,
            state: change.state,
            reason: change.reason,
        };
        self.known.insert(change.path, known);
    }

    /// Takes in a scan made at `now`.
    pub fn observe(&mut self, scan: &Scan, routes: &Routes, now: Duration) -> Observed {
        let mut observed = Observed::default();
        if scan.root == Root::Absent {
            return observed;
        }
        for found in &scan.found {
            self.take_in(found, routes, now, &mut observed);
        }
        self.miss(scan, &mut observed);
        observed.ready.sort_by_cached_key(|change| {
            (
                self.known.get(&change.path).map(|known| known.since),
                change.path.clone(),
            )
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
        let change = InputChange {
            path: path.clone(),
            fingerprint,
            state,
            reason: Some(reason),
        };
        self.remember(change.clone(), now);
        change
    }

    /// When a file may become ready, so that a scan is worth it.
    pub fn due(&self) -> Option<Duration> {
        self.known.values().filter_map(|known| self.due_of(known)).min()
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
            // A folder that stays locked is the same refusal, not a new one.
            Some(known) if known.fingerprint == found.fingerprint && known.state == state => known.since,
            _ => now,
        };
        let next = Known {
            fingerprint: found.fingerprint,
            since,
            state,
            reason: reason.clone(),
        };
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

    /// What was known and is not in the scan is gone, unless its folder could not be read.
    fn miss(&mut self, scan: &Scan, observed: &mut Observed) {
        let found: HashSet<&RawPath> = scan.found.iter().map(|found| &found.path).collect();
        let hidden = |path: &RawPath| {
            scan.unread
                .iter()
                .any(|folder| path.as_path().starts_with(folder.as_path()))
        };
        self.known.retain(|path, known| {
            let stays = found.contains(path) || hidden(path);
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
        format!(
            "{why}; complete after {} without a change",
            show_duration(self.quiet)
        )
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
mod tests {
    use super::*;

    const QUIET: Duration = Duration::from_secs(2);

    fn found(path: &str, size: u64, sight: Sight) -> Found {
        Found {
            path: RawPath::new(path),
            sight,
            fingerprint: Fingerprint {
                size,
                mtime_ns: 0,
                inode: 1,
                device: 1,
            },
        }
    }

    fn scan(found: Vec<Found>, unread: &[&str]) -> Scan {
        Scan {
            root: Root::Present { inode: 1, device: 1 },
            found,
            unread: unread.iter().map(|path| RawPath::new(*path)).collect(),
        }
    }

    /// What each of these scans, a second apart, says: `path state`, in any order of the paths.
    fn story(scans: Vec<Scan>) -> Vec<Vec<String>> {
        let routes = Routes::new([("all", "**/*.csv")]).expect("a good glob");
        let mut settling = Settling::new(QUIET);
        let mut told = Vec::new();
        for (second, scan) in (0..).zip(&scans) {
            let observed = settling.observe(scan, &routes, Duration::from_secs(second));
            let mut lines: Vec<String> = observed
                .changes
                .iter()
                .chain(&observed.ready)
                .map(|change| format!("{} {}", change.path.display(), change.state))
                .collect();
            lines.sort();
            told.push(lines);
        }
        told
    }

    #[test]
    fn quiet_is_counted_from_the_last_change_that_was_seen() {
        let sizes = [1, 1, 2, 2, 2];
        let scans = sizes.map(|size| scan(vec![found("a.csv", size, Sight::File)], &[]));
        let told = story(scans.into());
        assert_eq!(
            told,
            [
                vec!["a.csv seen"],
                vec![],
                vec!["a.csv settling"],
                vec![],
                vec!["a.csv ready"]
            ]
        );
    }

    #[test]
    fn what_may_not_be_read_is_blocked_and_comes_back() {
        const EACCES: i32 = 13;
        let folder = || found("f", 0, Sight::Unreadable(EACCES));
        let file = || found("f/a.csv", 1, Sight::File);
        let told = story(vec![
            scan(vec![file()], &[]),
            scan(vec![folder()], &["f"]),
            scan(vec![folder()], &["f"]),
            scan(vec![file()], &[]),
        ]);
        // The file is not gone while nobody can see it.
        assert_eq!(
            told,
            [
                vec!["f/a.csv seen"],
                vec!["f blocked"],
                vec![],
                vec!["f gone", "f/a.csv ready"]
            ]
        );
        assert_eq!(blocked(EACCES), "Permission denied (os error 13)");
    }

    #[test]
    fn a_file_that_was_refused_is_tried_again_later() {
        let routes = Routes::new([("all", "*")]).expect("a good glob");
        let mut settling = Settling::new(QUIET);
        let scan = scan(vec![found("a.csv", 1, Sight::File)], &[]);
        let ready = |settling: &mut Settling, second| {
            let observed = settling.observe(&scan, &routes, Duration::from_secs(second));
            observed.ready.len()
        };
        assert_eq!((ready(&mut settling, 0), ready(&mut settling, 2)), (0, 1));
        let change = InputChange {
            path: RawPath::new("a.csv"),
            fingerprint: scan.found[0].fingerprint,
            state: InputState::Blocked,
            reason: None,
        };
        let now = Duration::from_secs(2);
        settling.refused(
            &change.path,
            change.fingerprint,
            change.state,
            "locked".to_owned(),
            now,
        );
        assert_eq!(settling.due(), Some(now + Settling::RETRY));
        assert_eq!((ready(&mut settling, 11), ready(&mut settling, 12)), (0, 1));
    }

    #[test]
    fn an_absent_inbox_says_nothing() {
        let absent = Scan {
            root: Root::Absent,
            found: Vec::new(),
            unread: Vec::new(),
        };
        let there = || scan(vec![found("a.csv", 1, Sight::File)], &[]);
        let told = story(vec![there(), absent, there()]);
        assert_eq!(told, [vec!["a.csv seen"], vec![], vec!["a.csv ready"]]);
    }

    #[test]
    fn the_one_that_waited_longest_is_ready_first() {
        let routes = Routes::new([("all", "*")]).expect("a good glob");
        let mut settling = Settling::new(QUIET);
        let late = || found("a.csv", 1, Sight::File);
        let early = || found("b.csv", 1, Sight::File);
        settling.observe(&scan(vec![early()], &[]), &routes, Duration::ZERO);
        settling.observe(&scan(vec![late(), early()], &[]), &routes, Duration::from_secs(1));
        let observed = settling.observe(&scan(vec![late(), early()], &[]), &routes, Duration::from_secs(9));
        let order: Vec<String> = observed
            .ready
            .iter()
            .map(|change| change.path.display())
            .collect();
        assert_eq!(order, ["b.csv", "a.csv"]);
    }
}
