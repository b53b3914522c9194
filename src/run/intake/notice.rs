//! What the daemon has to say while it works.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::diagnostic::Report;
use crate::event::id::RunId;
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
    /// All runs of a file have ended and it was put away.
    PutAway {
        /// Relative to the inbox.
        path: RawPath,
        /// How.
        state: InputState,
        /// Relative to the project; nothing when the file was removed or had vanished.
        to: Option<RawPath>,
    },
    /// A run was broken off and starts over.
    Requeued(RunId),
    /// A run failed by something that passes, and is tried again.
    TriedAgain {
        /// Which.
        run: RunId,
        /// After this time.
        wait: Duration,
        /// What it failed by.
        why: Report,
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
