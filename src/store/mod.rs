//! What must not be forgotten: the ledger of inputs, the schedules, the requests, the runs, their events, the messages
//! about them, and blobs.
//!
//! One SQLite database in `.tidemill/`, used by several processes at once: writes take the lock at their beginning
//! (`BEGIN IMMEDIATE`), each is one transaction, and each is on the disk before it is reported.

mod blobs;
mod claim;
mod controls;
mod hooks;
mod ledger;
mod log;
mod outbox;
mod published;
mod quarantine;
mod queue;
mod retention;
mod run;
mod salvage;
mod schedules;
mod skips;
mod sqlite;
mod then;
mod versions;

use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;

pub use crate::store::blobs::{Blobs, Stray};
pub use crate::store::claim::{Claim, Claimed, ClaimedFile, DropRun};
pub use crate::store::controls::Paused;
pub use crate::store::hooks::{Heard, RequestKey};
pub use crate::store::ledger::{Change, InputId, InputRow, Taken};
pub use crate::store::outbox::{Attempted, Delivery, DeliveryState};
pub use crate::store::quarantine::QUARANTINED;
pub use crate::store::queue::{Lease, Waiting};
pub use crate::store::run::{NewRun, RunFilter, RunRow};
pub use crate::store::salvage::{FirstPage, LeftFile, Salvaged, Table, salvage};
pub use crate::store::schedules::{Fire, Made};
pub use crate::store::skips::{MadeRun, Skip};
pub use crate::store::then::Then;
pub use crate::store::versions::Version;

use crate::clock::{Clock, SystemClock};
use crate::diagnostic::Result;
use crate::event::payload::Payload;
use crate::store::claim::Claims;
use crate::store::controls::Controls;
use crate::store::hooks::Requests;
use crate::store::ledger::Ledger;
use crate::store::log::Log;
use crate::store::outbox::Outbox;
use crate::store::published::Archive;
use crate::store::quarantine::Quarantine;
use crate::store::queue::Queue;
use crate::store::retention::Retention;
use crate::store::run::Runs;
use crate::store::schedules::Schedules;
use crate::store::skips::Skips;
use crate::store::sqlite::Sqlite;
use crate::store::versions::Versions;

/// What a database must do to hold the state of a project: every change is one transaction, on the disk before it is
/// reported. `tests/store/conformance/` is what each must pass.
#[async_trait]
pub trait Backend:
    Archive
    + Claims
    + Controls
    + Ledger
    + Log
    + Outbox
    + Quarantine
    + Queue
    + Requests
    + Retention
    + Runs
    + Schedules
    + Skips
    + Versions
{
    /// Closes it. That it was not closed harms nothing: everything that was reported is on the disk.
    async fn close(self: Arc<Self>);
}

/// The state of a project: a database, and the blobs beside it. Clones share it.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    state: PathBuf,
    blobs: Blobs,
    backend: Arc<dyn Backend>,
}

/// What is asked of a store is asked of its database.
impl Deref for Store {
    type Target = dyn Backend;

    fn deref(&self) -> &Self::Target {
        self.0.backend.as_ref()
    }
}

impl Store {
    /// The database's name in the state folder.
    pub const FILE: &str = "tidemill.db";

    /// Text longer than this is never read back whole.
    const LONGEST_TEXT: u64 = 256 << 20;

    /// How much of a long text stays in the event.
    const PREVIEW: usize = 400;

    /// Opens the state in the folder `state` (`.tidemill`), making it when it is missing.
    ///
    /// Errors: `store::corrupt`, `store::newer`, `store::foreign`, `store::unwritable`, `store::disk_full`.
    pub async fn open(state: &Path) -> Result<Self> {
        Self::open_with(state, Arc::new(SystemClock::new())).await
    }

    /// The same with a clock of the caller's.
    pub async fn open_with(state: &Path, clock: Arc<dyn Clock>) -> Result<Self> {
        let blobs = Blobs::open(state)?;
        let backend = Arc::new(Sqlite::open(state, clock).await?);
        Ok(Self(Arc::new(Inner { state: state.to_owned(), blobs, backend })))
    }

    /// Closes the database, when this is the last clone. Dropping a store is safe too: everything that was reported is
    /// on the disk.
    pub async fn close(self) {
        if let Some(inner) = Arc::into_inner(self.0) {
            inner.backend.close().await;
        }
    }

    /// The state folder.
    pub fn folder(&self) -> &Path {
        &self.0.state
    }

    /// The blob store.
    pub fn blobs(&self) -> &Blobs {
        &self.0.blobs
    }

    /// Text for an event: itself when short, kept as a blob when long.
    pub async fn payload(&self, text: &str) -> Result<Payload> {
        if text.len() <= Payload::INLINE_LIMIT {
            return Ok(Payload::Inline(text.to_owned()));
        }
        Ok(Payload::Blob {
            digest: self.0.blobs.put(text).await?,
            size: u64::try_from(text.len()).unwrap_or(u64::MAX),
            preview: text.chars().take(Self::PREVIEW).collect(),
        })
    }

    /// The whole text of a payload; bytes that are not UTF-8 (a command's output may hold any) are replaced.
    pub async fn text(&self, payload: &Payload) -> Result<String> {
        match payload {
            Payload::Inline(text) => Ok(text.clone()),
            Payload::Blob { digest, .. } => {
                let bytes = self.0.blobs.read(digest, Self::LONGEST_TEXT).await?;
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            }
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Store").field(&self.0.state).finish()
    }
}
