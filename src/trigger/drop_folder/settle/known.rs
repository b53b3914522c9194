//! What is known of one file in the inbox.

use std::sync::Arc;
use std::time::Duration;

use super::{Observed, Wait, complete_after};
use crate::event::input::{Fingerprint, InputChange, RawPath, Role};
use crate::event::state::InputState;
use crate::trigger::drop_folder::judge::Judged;
use crate::trigger::drop_folder::routes::Route;

/// A file as it was seen last.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) fingerprint: Fingerprint,
    /// When it was last seen to change, or last refused.
    pub(super) since: Duration,
    /// When it was last seen.
    pub(super) seen: Duration,
    pub(super) state: InputState,
    pub(super) reason: Option<String>,
    pub(super) kind: Kind,
    /// A blocked file is tried again then.
    pub(super) retry: Option<Duration>,
    /// What it waits for besides its own quiet.
    wait: Option<Wait>,
}

/// What it is to us.
#[derive(Debug, Clone, Default)]
pub(super) enum Kind {
    /// The ledger knows it, and it was not looked at yet.
    #[default]
    Remembered,
    /// Nothing that is taken as it is.
    Left,
    /// It goes with another file.
    Company(Company),
    /// It may be taken.
    Input {
        /// For these.
        takers: Vec<Arc<Route>>,
        /// After so long.
        quiet: Duration,
        /// Whether it waits for no other file.
        alone: bool,
    },
}

/// Whose company it is, as far as its name says.
#[derive(Debug, Clone)]
pub(super) struct Company {
    pub(super) role: Role,
    pub(super) route: Arc<Route>,
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl Kind {
    pub(super) fn of(judged: &Judged, quiet: Duration) -> Self {
        match judged {
            Judged::Left(..) => Self::Left,
            Judged::Company(role, route) => Self::Company(Company { role: *role, route: Arc::clone(route) }),
            Judged::Input(takers) => Self::Input {
                // When all say so.
                quiet: takers.iter().map(|route| route.drop.settle.unwrap_or(quiet)).max().unwrap_or(quiet),
                alone: takers
                    .iter()
                    .all(|route| route.drop.batch.is_none() && route.company().next().is_none()),
                takers: takers.clone(),
            },
        }
    }

    /// The reason of a file that has to be quiet.
    pub(super) fn waits(&self, why: &str) -> String {
        match self {
            Self::Input { quiet, .. } => format!("{why}; {}", complete_after(*quiet)),
            _ => why.to_owned(),
        }
    }
}

impl Known {
    pub(super) fn new(fingerprint: Fingerprint, now: Duration) -> Self {
        Self {
            fingerprint,
            since: now,
            seen: now,
            state: InputState::Seen,
            reason: None,
            kind: Kind::Remembered,
            retry: None,
            wait: None,
        }
    }

    pub(super) fn remembered(change: InputChange, now: Duration) -> Self {
        Self { state: change.state, reason: change.reason, ..Self::new(change.fingerprint, now) }
    }

    /// Whether that version was taken, and stands there because it is kept.
    pub(super) fn is_through(&self) -> bool {
        use InputState::{Claimed, Done, Duplicate, Failed, Rejected};
        matches!(self.state, Claimed | Done | Failed | Rejected | Duplicate)
    }

    /// Whether it waits to be taken.
    pub(super) fn waits(&self) -> bool {
        use InputState::{Incomplete, Ready, Seen, Settling};
        matches!(self.state, Seen | Settling | Ready | Incomplete)
    }

    /// How long it has to be left alone, counted from its last change or refusal, when that can end.
    pub(super) fn rest(&self, quiet: Duration) -> Option<Duration> {
        match self.state {
            InputState::Blocked => self.retry.map(|retry| retry.saturating_sub(self.since)),
            _ => self.waits().then_some(quiet),
        }
    }

    /// Whether being in `state` now is no new beginning.
    pub(super) fn goes_on_as(&self, state: InputState) -> bool {
        self.state == state || (self.state == InputState::RootAbsent && state == InputState::Settling)
    }

    /// When a look may show something.
    pub(super) fn due(&self) -> Option<Duration> {
        match (&self.kind, self.state) {
            (_, InputState::Blocked) => self.retry,
            (Kind::Input { quiet, .. }, _) if self.waits() => match &self.wait {
                Some(Wait::Time(due) | Wait::Missing(_, due)) => *due,
                Some(Wait::GivenUp(_)) => None,
                None => Some(self.since + *quiet),
            },
            _ => None,
        }
    }

    /// It waits for something.
    pub(super) fn wait(&mut self, path: &RawPath, wait: Wait, observed: &mut Observed) {
        match &wait {
            Wait::Missing(reason, _) | Wait::GivenUp(reason) => {
                self.enter(path, InputState::Incomplete, Some(reason.clone()), observed);
            }
            Wait::Time(_) if self.state == InputState::Incomplete => {
                let reason = self.kind.waits("what was missing has come");
                self.enter(path, InputState::Settling, Some(reason), observed);
            }
            Wait::Time(_) => {}
        }
        self.wait = Some(wait);
    }

    /// Turns to a state; that it is there already, for the same reason, is no change.
    pub(super) fn enter(
        &mut self,
        path: &RawPath,
        state: InputState,
        reason: Option<String>,
        observed: &mut Observed,
    ) {
        if self.state == state && self.reason == reason {
            return;
        }
        self.state = state;
        self.reason.clone_from(&reason);
        observed.changes.push(InputChange {
            path: path.clone(),
            fingerprint: self.fingerprint,
            state,
            reason,
        });
    }
}
