//! One commit for the events that several runs append at once: a disk takes its time for each.
//!
//! What is to be appended waits in a list. Whoever gets the writer next takes all of it along, in the order in which it
//! came; while it is on its way to the disk, the list fills again.

use std::sync::{Mutex, PoisonError};

use sqlx::SqliteConnection;
use tokio::sync::oneshot;

use crate::diagnostic::{Diagnostic, Result};
use crate::event::Event;
use crate::store::sqlite::Sqlite;
use crate::store::sqlite::error::explain;
use crate::store::sqlite::log::{Append, add};

/// Events on their way to the writer.
#[derive(Debug, Default)]
pub(in crate::store) struct Pending(Mutex<Vec<(Append, oneshot::Sender<Result<Event>>)>>);

impl Pending {
    fn push(&self, append: Append, told: oneshot::Sender<Result<Event>>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((append, told));
    }

    fn take(&self) -> (Vec<Append>, Vec<oneshot::Sender<Result<Event>>>) {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_iter().unzip()
    }
}

impl Sqlite {
    /// Appends an event, together with all that wait at this moment.
    pub(in crate::store) async fn write(&self, append: Append) -> Result<Event> {
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
            Err(error) if appends.len() > 1 && !is_of_all(&error) => {
                self.write_apart(&mut writer, &appends).await
            }
            Err(error) => appends.iter().map(|_| Err(alike(&error))).collect(),
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

/// The same error once more, for another who waits.
fn alike(error: &Diagnostic) -> Diagnostic {
    Diagnostic::new(error.code(), error.message()).help(error.report().help.unwrap_or_default())
}

/// Whether each alone would fail in the same way, after as long a wait.
fn is_of_all(error: &Diagnostic) -> bool {
    matches!(error.code(), "store::busy" | "store::disk_full" | "store::io")
}

/// Whether nothing was written because of the run, and not because of the database.
fn is_refusal(error: &Diagnostic) -> bool {
    matches!(error.code(), "store::unknown_run" | "store::run_ended" | "store::lease_lost")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::clock::SystemClock;
    use crate::event::What;
    use crate::event::id::{Digest, RunId};
    use crate::event::state::RunState;
    use crate::event::trigger::Trigger;
    use crate::store::NewRun;
    use crate::store::log::Log as _;

    async fn queued(store: &Sqlite, runs: usize) -> Vec<RunId> {
        let mut ids = Vec::new();
        for number in 0..runs {
            let id = RunId::parse(&format!("run-{number}")).expect("an id");
            let at = "2026-11-30T23:00:00Z".parse().expect("a time");
            let run = NewRun::new(id.clone(), "w", Trigger::Webhook, Digest::of("script"), "m", at);
            store.queue_run(run).await.expect("a queued run");
            ids.push(id);
        }
        ids
    }

    fn said(reason: &str) -> What {
        What::StateEntered { state: RunState::Running, reason: Some(reason.to_owned()) }
    }

    /// Has an event of each run wait for the writer, which is busy, and then lets the writer go.
    async fn append_at_once(store: &Sqlite, events: Vec<(RunId, What)>) -> Vec<Result<Event>> {
        let count = events.len();
        let busy = store.0.writer.lock().await;
        let appending = events.into_iter().map(|(run, what)| {
            let store = store.clone();
            tokio::spawn(async move { store.append(&run, what).await })
        });
        let appending: Vec<_> = appending.collect();
        while store.0.pending.0.lock().expect("the list").len() < count {
            tokio::task::yield_now().await;
        }
        drop(busy);
        let mut results = Vec::new();
        for task in appending {
            results.push(task.await.expect("it does not panic"));
        }
        results
    }

    #[tokio::test]
    async fn events_that_wait_together_share_one_commit() {
        let state = tempfile::tempdir().expect("a folder");
        let store = Sqlite::open(state.path(), Arc::new(SystemClock::new())).await.expect("a store");
        let runs = queued(&store, 20).await;
        let commits = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&commits);
        store.0.writer.lock().await.lock_handle().await.expect("a connection").set_commit_hook(move || {
            counter.fetch_add(1, Ordering::SeqCst);
            true
        });
        let mut followed = store.follow();
        let events = runs.iter().map(|run| (run.clone(), said("x"))).collect();
        let results = append_at_once(&store, events).await;
        assert!(results.iter().all(|result| result.as_ref().is_ok_and(|event| event.seq == 3)));
        assert_eq!(commits.load(Ordering::SeqCst), 1, "for {} events", results.len());
        let mut told = Vec::new();
        while let Ok(event) = followed.try_recv() {
            told.push(event.run);
        }
        assert_eq!(told, runs, "in the order of the log");
        // One that stands alone is a commit of its own.
        store.append(&runs[0], said("x")).await.expect("an event");
        assert_eq!(commits.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn what_the_database_does_not_take_keeps_nobody_else_from_it() {
        let state = tempfile::tempdir().expect("a folder");
        let store = Sqlite::open(state.path(), Arc::new(SystemClock::new())).await.expect("a store");
        let runs = queued(&store, 3).await;
        let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON events WHEN NEW.run = 'run-1'
            BEGIN SELECT RAISE(ABORT, 'the test wants it'); END";
        sqlx::raw_sql(refuse).execute(&mut *store.0.writer.lock().await).await.expect("a trigger");
        let events = runs.iter().map(|run| (run.clone(), said("x"))).collect();
        let results = append_at_once(&store, events).await;
        let codes: Vec<Option<&str>> =
            results.iter().map(|result| result.as_ref().err().map(Diagnostic::code)).collect();
        assert_eq!(codes, [None, Some("store::failed"), None]);
        for (run, events) in runs.iter().zip([3, 2, 3]) {
            assert_eq!(store.all_events(run).await.expect("events").len(), events, "{run}");
        }
    }
}
