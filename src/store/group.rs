//! One commit for the events that several runs append at once: a disk takes its time for each.
//!
//! What is to be appended waits in a list. Whoever gets the writer next takes all of it along, in the order in which it
//! came; while it is on its way to the disk, the list fills again.

use std::sync::{Mutex, PoisonError};

use sqlx::SqliteConnection;
use tokio::sync::oneshot;

use crate::diagnostic::{Diagnostic, Result};
use crate::event::Event;
use crate::store::Store;
use crate::store::error::explain;
use crate::store::log::{Append, add};

/// Events on their way to the writer.
#[derive(Debug, Default)]
pub(super) struct Pending(Mutex<Vec<(Append, oneshot::Sender<Result<Event>>)>>);

impl Pending {
    fn push(&self, append: Append, told: oneshot::Sender<Result<Event>>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((append, told));
    }

    fn take(&self) -> (Vec<Append>, Vec<oneshot::Sender<Result<Event>>>) {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_iter().unzip()
    }
}

impl Store {
    /// Appends an event, together with all that wait at this moment.
    pub(super) async fn write(&self, append: Append) -> Result<Event> {
        let (told, done) = oneshot::channel();
        self.0.pending.push(append, told);
        // A caller that is broken off must not take the events of others with it.
        tokio::spawn(self.clone().write_pending());
        done.await.unwrap_or_else(|_| {
            Err(Diagnostic::new("store::failed", "an event was not recorded: tidemill is ending")
                .help("nothing is lost; the run goes on when tidemill starts again"))
        })
    }

    async fn write_pending(self) {
        let mut writer = self.0.writer.lock().await;
        let (appends, callers) = self.0.pending.take();
        if appends.is_empty() {
            return;
        }
        let results = match self.write_together(&mut writer, &appends).await {
            Ok(results) => results,
            // What failed together may go apart, and each then has an error of its own.
            Err(_) if appends.len() > 1 => self.write_apart(&mut writer, &appends).await,
            Err(error) => vec![Err(error)],
        };
        // Told under the lock: followers see events in the order of the log.
        self.tell(results.iter().flatten().cloned());
        drop(writer);
        // Whoever closes the store next is to be the last who has it.
        drop(self);
        for (caller, result) in callers.into_iter().zip(results) {
            // One that was broken off does not listen any more.
            let _ = caller.send(result);
        }
    }

    /// One transaction for all. A refusal concerns one of them; anything else all.
    async fn write_together(
        &self,
        writer: &mut SqliteConnection,
        appends: &[Append],
    ) -> Result<Vec<Result<Event>>> {
        let failed = |error| explain("record events", error);
        let mut transaction = self.begin(writer).await.map_err(failed)?;
        let mut results = Vec::with_capacity(appends.len());
        for append in appends {
            match add(&mut transaction, append, self.0.clock.now()).await {
                Err(error) if !is_refusal(&error) => return Err(error),
                result => results.push(result),
            }
        }
        transaction.commit().await.map_err(failed)?;
        Ok(results)
    }

    async fn write_apart(&self, writer: &mut SqliteConnection, appends: &[Append]) -> Vec<Result<Event>> {
        let mut results = Vec::with_capacity(appends.len());
        for append in appends {
            let alone = std::slice::from_ref(append);
            results.push(self.write_together(writer, alone).await.and_then(|mut one| {
                one.pop()
                    .unwrap_or_else(|| Err(Diagnostic::new("store::failed", "an event was not recorded")))
            }));
        }
        results
    }
}

/// Whether nothing was written because of the run, and not because of the database.
fn is_refusal(error: &Diagnostic) -> bool {
    matches!(error.code(), "store::unknown_run" | "store::run_ended" | "store::lease_lost")
}
