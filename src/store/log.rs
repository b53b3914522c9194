//! The event log: append first, act second.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row as _, SqliteConnection};
use tokio::sync::broadcast;

use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::RunId;
use crate::event::state::RunState;
use crate::event::usage::{Cost, Usage};
use crate::event::{Event, What};
use crate::store::Store;
use crate::store::column::{instant, json, micros, rounded, to_json};
use crate::store::error::{explain, unreadable};
use crate::store::fold::fold;
use crate::store::outbox::tell_targets;
use crate::store::run::{NewRun, decode};

impl Store {
    /// Queues a run: its row and its first two events stand in one transaction.
    pub async fn queue_run(&self, run: NewRun) -> Result<()> {
        let failed = |error| explain("queue a run", error);
        let mut writer = self.0.writer.lock().await;
        let mut transaction = self.begin(&mut writer).await.map_err(failed)?;
        let events = insert(&mut transaction, &run).await?;
        transaction.commit().await.map_err(failed)?;
        self.tell(events);
        Ok(())
    }

    /// Appends what happened to a run; the run's row changes with it, in one transaction.
    ///
    /// Errors: `store::unknown_run`, `store::run_ended` (nothing follows a run's last event).
    pub async fn append(&self, run: &RunId, what: What) -> Result<Event> {
        let failed = |error| explain(&format!("record an event of run {run}"), error);
        let mut writer = self.0.writer.lock().await;
        let mut transaction = self.begin(&mut writer).await.map_err(failed)?;
        let event = add(&mut transaction, run, what, self.0.clock.now()).await?;
        transaction.commit().await.map_err(failed)?;
        // Told under the lock: followers see events in the order of the log.
        self.tell([event.clone()]);
        Ok(event)
    }

    /// The events of a run with a place above `after`, in order, `limit` at most.
    pub async fn events(&self, run: &RunId, after: u64, limit: u32) -> Result<Vec<Event>> {
        sqlx::query("SELECT seq, at, what FROM events WHERE run = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3")
            .bind(run.as_str())
            .bind(i64::try_from(after).unwrap_or(i64::MAX))
            .bind(limit)
            .fetch_all(&self.0.readers)
            .await
            .map_err(|error| explain(&format!("read the events of run {run}"), error))?
            .iter()
            .map(|row| event(run, row))
            .collect()
    }

    /// Every event of a run, in order.
    pub async fn all_events(&self, run: &RunId) -> Result<Vec<Event>> {
        const PAGE: u32 = 1_000;
        let mut events: Vec<Event> = Vec::new();
        loop {
            let page = self.events(run, events.last().map_or(0, |event| event.seq), PAGE).await?;
            if page.is_empty() {
                return Ok(events);
            }
            events.extend(page);
        }
    }

    /// Events that this process appends from now on. A reader that lags too far is told so and reads the log.
    pub fn follow(&self) -> broadcast::Receiver<Event> {
        self.0.told.subscribe()
    }

    /// Tells followers. That nobody follows is no error.
    pub(super) fn tell(&self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            let _ = self.0.told.send(event);
        }
    }
}

/// Writes the row of a new run and its first events. Nothing to fold yet: the row is as these events make it.
pub(super) async fn insert(connection: &mut SqliteConnection, run: &NewRun) -> Result<[Event; 2]> {
    let failed = |error| explain(&format!("queue run {}", run.id), error);
    let queued = What::RunQueued {
        workflow: run.workflow.clone(),
        trigger: run.trigger,
        inputs: run.inputs.clone(),
        params: run.params.clone(),
        script: run.script.clone(),
        model: run.model.clone(),
    };
    let waiting = What::StateEntered { state: RunState::Queued, reason: None };
    let event = |seq, what| Event { run: run.id.clone(), seq, at: rounded(run.at), what };
    let events = [event(1, queued), event(2, waiting)];
    sqlx::query(
        "INSERT INTO runs (id, workflow, trigger, state, model, script, inputs, input, queued_at, usage, cost_usd,
         params, last_seq) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, 2)",
    )
    .bind(run.id.as_str())
    .bind(&run.workflow)
    .bind(run.trigger.as_str())
    .bind(RunState::Queued.as_str())
    .bind(&run.model)
    .bind(run.script.as_str())
    .bind(to_json(&run.inputs)?)
    .bind(run.input)
    .bind(micros(run.at))
    .bind(to_json(&Usage::default())?)
    .bind(Cost::ZERO.usd())
    .bind(to_json(&run.params)?)
    .execute(&mut *connection)
    .await
    .map_err(|error| if is_taken(&error) { taken(&run.id) } else { failed(error) })?;
    sqlx::query("INSERT INTO events (run, seq, at, what) VALUES (?1, 1, ?2, ?3), (?1, 2, ?2, ?4)")
        .bind(run.id.as_str())
        .bind(micros(run.at))
        .bind(to_json(&events[0].what)?)
        .bind(to_json(&events[1].what)?)
        .execute(&mut *connection)
        .await
        .map_err(failed)?;
    tell_targets(connection, &run.workflow, &run.script, &events[0]).await?;
    Ok(events)
}

/// Whether another run has the id already. Ids are drawn, and two processes may draw the same in one second.
fn is_taken(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| error.message().contains("runs.id"))
}

fn taken(run: &RunId) -> Diagnostic {
    Diagnostic::new("store::id_taken", format!("there is a run {run} already"))
        .help("queue it again: it gets another id")
}

/// Adds an event inside a transaction that holds the write lock, so that no place is given twice.
pub(super) async fn add(
    connection: &mut SqliteConnection,
    run: &RunId,
    what: What,
    at: jiff::Timestamp,
) -> Result<Event> {
    let failed = |error| explain(&format!("record an event of run {run}"), error);
    let found = sqlx::query("SELECT * FROM runs WHERE id = ?1")
        .bind(run.as_str())
        .fetch_optional(&mut *connection)
        .await
        .map_err(failed)?
        .ok_or_else(|| {
            Diagnostic::new("store::unknown_run", format!("there is no run {run}"))
                .help("`tidemill runs` lists all")
        })?;
    let mut row = decode(&found)?;
    if row.state.is_end() {
        let message = format!("run {run} has ended ({}); nothing can be added to it", row.state);
        return Err(Diagnostic::new("store::run_ended", message)
            .help("another process may have ended it; `tidemill logs` shows how"));
    }
    let last: i64 = found.try_get("last_seq").map_err(failed)?;
    let event = Event {
        run: run.clone(),
        seq: u64::try_from(last + 1).map_err(|_| unreadable("an event's place"))?,
        at: rounded(at),
        what,
    };
    fold(&mut row, &event);
    sqlx::query("INSERT INTO events (run, seq, at, what) VALUES (?1, ?2, ?3, ?4)")
        .bind(run.as_str())
        .bind(last + 1)
        .bind(micros(event.at))
        .bind(to_json(&event.what)?)
        .execute(&mut *connection)
        .await
        .map_err(failed)?;
    sqlx::query(
        "UPDATE runs SET last_seq = ?2, state = ?3, started_at = ?4, ended_at = ?5, turns = ?6, usage = ?7,
         cost_usd = ?8, published = ?9, report = ?10 WHERE id = ?1",
    )
    .bind(run.as_str())
    .bind(last + 1)
    .bind(row.state.as_str())
    .bind(row.started_at.map(micros))
    .bind(row.ended_at.map(micros))
    .bind(row.turns)
    .bind(to_json(&row.usage)?)
    .bind(row.cost.map(Cost::usd))
    .bind(&row.published)
    .bind(row.report.as_ref().map(to_json).transpose()?)
    .execute(&mut *connection)
    .await
    .map_err(failed)?;
    tell_targets(connection, &row.workflow, &row.script, &event).await?;
    Ok(event)
}

fn event(run: &RunId, row: &SqliteRow) -> Result<Event> {
    let failed = |error| explain(&format!("read the events of run {run}"), error);
    let seq: i64 = row.try_get("seq").map_err(failed)?;
    Ok(Event {
        run: run.clone(),
        seq: u64::try_from(seq).map_err(|_| unreadable("an event's place"))?,
        at: instant(row, "at")?,
        what: json(row.try_get("what").map_err(failed)?, "an event")?,
    })
}
