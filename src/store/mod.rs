//! What must not be forgotten: the ledger of inputs, the runs, their events, and blobs.
//!
//! One SQLite database in `.tidemill/`, used by several processes at once: writes take the lock at their beginning
//! (`BEGIN IMMEDIATE`), each is one transaction, and each is on the disk before it is reported.

mod blobs;
mod column;
mod database;
mod error;
mod fold;
mod ledger;
mod log;
mod queue;
mod run;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sqlx::sqlite::SqlitePool;
use sqlx::{Connection as _, SqliteConnection};
use tokio::sync::{Mutex, broadcast};

pub use crate::store::blobs::Blobs;
pub use crate::store::ledger::{Change, Claim, InputId, InputRow, Taken};
pub use crate::store::run::{NewRun, RunFilter, RunRow};

use crate::clock::{Clock, SystemClock};
use crate::diagnostic::Result;
use crate::event::Event;
use crate::event::payload::Payload;

/// The state of a project. Clones share it.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    state: PathBuf,
    writer: Mutex<SqliteConnection>,
    readers: SqlitePool,
    blobs: Blobs,
    told: broadcast::Sender<Event>,
    clock: Arc<dyn Clock>,
}

impl Store {
    /// The database's name in the state folder.
    pub const FILE: &str = "tidemill.db";

    /// A follower may be this many events behind before it has to read the log.
    const FOLLOW: usize = 1024;

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
        let (writer, readers) = database::open(&state.join(Self::FILE)).await?;
        Ok(Self(Arc::new(Inner {
            state: state.to_owned(),
            writer: Mutex::new(writer),
            readers,
            blobs,
            told: broadcast::channel(Self::FOLLOW).0,
            clock,
        })))
    }

    /// Closes the database and folds its journal into it, when this is the last clone. Dropping a store is safe too:
    /// everything that was reported is on the disk.
    pub async fn close(self) {
        if let Some(inner) = Arc::into_inner(self.0) {
            inner.readers.close().await;
            // What the journal holds stays there if this fails, and is read from there.
            let _ = inner.writer.into_inner().close().await;
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
