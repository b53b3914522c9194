//! What must not be forgotten: the ledger of inputs, the schedules, the requests, the runs, their events, the messages
//! about them, and blobs.
//!
//! One SQLite database in `.tidemill/`, used by several processes at once: writes take the lock at their beginning
//! (`BEGIN IMMEDIATE`), each is one transaction, and each is on the disk before it is reported.

mod blobs;
mod claim;
mod column;
mod controls;
mod database;
mod error;
mod fold;
mod group;
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
mod then;
mod versions;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sqlx::sqlite::SqlitePool;
use sqlx::{Connection as _, Sqlite, SqliteConnection, Transaction};
use tokio::sync::{Mutex, broadcast};

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
use crate::event::Event;
use crate::event::payload::Payload;

/// The state of a project. Clones share it.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    state: PathBuf,
    writer: Mutex<SqliteConnection>,
    /// Events on their way to the writer.
    pending: group::Pending,
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
            pending: group::Pending::default(),
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

    /// Begins to write. A transaction that could neither be finished nor undone, as on a full disk, leaves the
    /// connection in the middle of it; then there is a new one.
    async fn begin<'a>(
        &self,
        writer: &'a mut SqliteConnection,
    ) -> std::result::Result<Transaction<'a, Sqlite>, sqlx::Error> {
        if writer.is_in_transaction() {
            // One that was given up may still be on its way back: this waits for it.
            let _ = sqlx::raw_sql("SELECT 1").execute(&mut *writer).await;
            if writer.is_in_transaction() {
                *writer = database::writer(&self.0.state.join(Self::FILE)).await?;
            }
        }
        writer.begin_with("BEGIN IMMEDIATE").await
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::What;
    use crate::event::id::{Digest, RunId};
    use crate::event::state::RunState;
    use crate::event::trigger::Trigger;

    /// A full disk, as SQLite sees it: no page more than there are.
    async fn fill(store: &Store) {
        let mut writer = store.0.writer.lock().await;
        sqlx::raw_sql("PRAGMA max_page_count = 1").execute(&mut *writer).await.unwrap();
    }

    async fn make_room(store: &Store) {
        let mut writer = store.0.writer.lock().await;
        sqlx::raw_sql("PRAGMA max_page_count = 1000000").execute(&mut *writer).await.unwrap();
    }

    #[tokio::test]
    async fn a_disk_that_was_full_and_has_room_again_is_written_to() {
        let state = tempfile::tempdir().unwrap();
        let store = Store::open(state.path()).await.unwrap();
        let id = RunId::parse("20261130-230000-abcd").unwrap();
        let at = "2026-11-30T23:00:00Z".parse().unwrap();
        let run = NewRun::new(id.clone(), "w", Trigger::Manual, Digest::of("script"), "m", at);
        store.queue_run(run).await.unwrap();
        let long = "x".repeat(60_000);
        let said =
            |reason: &str| What::StateEntered { state: RunState::Running, reason: Some(reason.to_owned()) };
        fill(&store).await;
        let mut fitted = 0;
        let refused = loop {
            match store.append(&id, said(&long)).await {
                Ok(_) => fitted += 1,
                Err(diagnostic) => break diagnostic,
            }
        };
        assert_eq!(refused.code(), "store::disk_full", "after {fitted}");
        make_room(&store).await;
        store.append(&id, said(&long)).await.unwrap();
        let events = store.all_events(&id).await.unwrap().len();
        assert_eq!(events, 2 + fitted + 1, "those of the queue, those that fitted, and the one after");
    }
}
