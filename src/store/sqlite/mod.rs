//! The database of one machine: a SQLite file in `.tidemill/`.
//!
//! Several processes use it at once: writes take the lock at their beginning (`BEGIN IMMEDIATE`), each is one transaction,
//! and each is on the disk before it is reported.

mod claim;
mod column;
mod controls;
pub(in crate::store) mod database;
pub(in crate::store) mod error;
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
mod schedules;
mod skips;
mod versions;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use sqlx::sqlite::SqlitePool;
use sqlx::{Connection as _, SqliteConnection, Transaction};
use tokio::sync::{Mutex, broadcast};

use crate::clock::Clock;
use crate::diagnostic::Result;
use crate::event::Event;
use crate::store::{Backend, Store};

/// A SQLite file. Clones share it.
#[derive(Clone)]
pub(in crate::store) struct Sqlite(Arc<Inner>);

struct Inner {
    state: PathBuf,
    writer: Mutex<SqliteConnection>,
    /// Events on their way to the writer.
    pending: group::Pending,
    readers: SqlitePool,
    told: broadcast::Sender<Event>,
    clock: Arc<dyn Clock>,
}

impl Sqlite {
    /// A follower may be this many events behind before it has to read the log.
    const FOLLOW: usize = 1024;

    /// Opens the database in the folder `state`, making it when it is missing.
    pub(in crate::store) async fn open(state: &Path, clock: Arc<dyn Clock>) -> Result<Self> {
        let (writer, readers) = database::open(&state.join(Store::FILE)).await?;
        Ok(Self(Arc::new(Inner {
            state: state.to_owned(),
            writer: Mutex::new(writer),
            pending: group::Pending::default(),
            readers,
            told: broadcast::channel(Self::FOLLOW).0,
            clock,
        })))
    }

    /// The state folder.
    fn folder(&self) -> &Path {
        &self.0.state
    }

    /// Begins to write. A transaction that could neither be finished nor undone, as on a full disk, leaves the
    /// connection in the middle of it; then there is a new one.
    async fn begin<'a>(
        &self,
        writer: &'a mut SqliteConnection,
    ) -> std::result::Result<Transaction<'a, sqlx::Sqlite>, sqlx::Error> {
        if writer.is_in_transaction() {
            // One that was given up may still be on its way back: this waits for it.
            let _ = sqlx::raw_sql("SELECT 1").execute(&mut *writer).await;
            if writer.is_in_transaction() {
                *writer = database::writer(&self.0.state.join(Store::FILE)).await?;
            }
        }
        writer.begin_with("BEGIN IMMEDIATE").await
    }
}

#[async_trait]
impl Backend for Sqlite {
    async fn close(self: Arc<Self>) {
        let inner = Arc::into_inner(self).and_then(|this| Arc::into_inner(this.0));
        if let Some(inner) = inner {
            inner.readers.close().await;
            // What the journal holds stays there if this fails, and is read from there.
            let _ = inner.writer.into_inner().close().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use crate::event::What;
    use crate::event::id::{Digest, RunId};
    use crate::event::state::RunState;
    use crate::event::trigger::Trigger;
    use crate::store::NewRun;
    use crate::store::log::Log as _;

    /// A full disk, as SQLite sees it: no page more than there are.
    async fn fill(store: &Sqlite) {
        let mut writer = store.0.writer.lock().await;
        sqlx::raw_sql("PRAGMA max_page_count = 1").execute(&mut *writer).await.unwrap();
    }

    async fn make_room(store: &Sqlite) {
        let mut writer = store.0.writer.lock().await;
        sqlx::raw_sql("PRAGMA max_page_count = 1000000").execute(&mut *writer).await.unwrap();
    }

    #[tokio::test]
    async fn a_disk_that_was_full_and_has_room_again_is_written_to() {
        let state = tempfile::tempdir().unwrap();
        let store = Sqlite::open(state.path(), Arc::new(SystemClock::new())).await.unwrap();
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
