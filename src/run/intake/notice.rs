//! What the daemon has to say while it works.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;

use crate::diagnostic::Report;
use crate::event::again::Again;
use crate::event::id::{Digest, RunId};
use crate::event::input::RawPath;
use crate::event::state::InputState;

/// Something a person who watches may want to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The inbox is not there; it is looked for until it is.
    InboxAbsent(PathBuf),
    /// The inbox is there again.
    InboxBack(PathBuf),
    /// A file in the inbox is not for us, or cannot be taken.
    Left {
        /// Relative to the inbox.
        path: RawPath,
        /// `ignored`, `blocked` or `incomplete`.
        state: InputState,
        /// Why.
        reason: String,
    },
    /// A file was taken and its runs are queued.
    Claimed {
        /// Relative to the inbox.
        path: RawPath,
        /// Workflow and run.
        runs: Vec<(String, RunId)>,
    },
    /// An instant of a schedule has come and its run is queued.
    Fired {
        /// Its id.
        schedule: String,
        /// The instant.
        at: Timestamp,
        /// The run.
        run: RunId,
    },
    /// Instants of a schedule have come and make no run.
    Skipped {
        /// Its id.
        schedule: String,
        /// How many.
        count: u64,
        /// The last of them.
        last: Timestamp,
        /// Why that one makes none.
        reason: &'static str,
    },
    /// New runs of a workflow use another version of its script from now on.
    Reloaded {
        /// Its name.
        workflow: String,
        /// What became of it.
        how: Swap,
    },
    /// A request came to a webhook and its run is queued.
    Received {
        /// Its path.
        hook: String,
        /// The run.
        run: RunId,
    },
    /// Requests to a webhook were not taken.
    Refused {
        /// Its path.
        hook: String,
        /// How many since it was last said.
        count: u64,
        /// Why the last of them was not.
        why: String,
    },
    /// A message about a run did not arrive: at the first attempt, or for good.
    Undelivered {
        /// Its number.
        delivery: i64,
        /// What it tells of.
        moment: &'static str,
        /// Of which run.
        run: RunId,
        /// Where it goes, as it may be shown.
        to: String,
        /// Where it stands now: `waiting` for the next attempt, `failed` or `gone`.
        state: &'static str,
        /// Why.
        why: String,
    },
    /// All runs of a file have ended and it was put away.
    PutAway {
        /// Relative to the inbox.
        path: RawPath,
        /// How.
        state: InputState,
        /// Relative to the project; nothing when the file was removed or had vanished.
        to: Option<RawPath>,
    },
    /// A run was broken off and goes on.
    Requeued(RunId),
    /// A run failed by something that passes, and is tried again.
    TriedAgain {
        /// Which.
        run: RunId,
        /// When, and what it failed by.
        again: Again,
    },
    /// Nothing new begins; so many runs are waited for.
    Finishing(usize),
    /// Work stands still until something passes, a full disk for instance.
    Paused {
        /// Which work: "taking files in".
        what: &'static str,
        /// Until this has passed.
        why: Report,
    },
    /// Work that stood still goes on.
    GoesOn(&'static str),
    /// Something is not as it should be, and work goes on.
    Warned(Report),
}

/// What became of a workflow whose script was changed while it was watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Swap {
    /// It was not there before.
    New(Digest),
    /// It has another version.
    Changed(Digest),
    /// Its script is gone.
    Removed,
}

/// Who is told.
#[derive(Clone)]
pub struct Tell(Arc<dyn Fn(Notice) + Send + Sync>);

impl Tell {
    /// Tells `listener`, which must return soon.
    pub fn to(listener: impl Fn(Notice) + Send + Sync + 'static) -> Self {
        Self(Arc::new(listener))
    }

    /// Says it.
    pub fn say(&self, notice: Notice) {
        (self.0)(notice);
    }
}

impl Default for Tell {
    fn default() -> Self {
        Self::to(|_| {})
    }
}

impl fmt::Debug for Tell {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Tell")
    }
}
