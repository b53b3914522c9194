//! The event log: append first, act second.

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row as _, SqliteConnection};
use tokio::sync::broadcast;

use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::{Digest, RunId};
use crate::event::state::RunState;
use crate::event::usage::{Cost, Usage};
use crate::event::{Event, What};
use crate::store::log::Log;
use crate::store::queue::Lease;
use crate::store::run::NewRun;
use crate::store::sqlite::Sqlite;
use crate::store::sqlite::column::{digest, instant, json, micros, moment, rounded, to_json};
use crate::store::sqlite::error::{explain, unreadable};
use crate::store::sqlite::fold::{Folded, fold, is_progress};
use crate::store::sqlite::outbox::tell_targets;
use crate::store::sqlite::run::{again, fence};

#[async_trait]
impl Log for Sqlite {
    async fn queue_run(&self, run: NewRun) -> Result<()> {
        let failed = |error| explain("queue a run", error);
        let mut writer = self.0.writer.lock().await;
        let mut transaction = self.begin(&mut writer).await.map_err(failed)?;
        let events = insert(&mut transaction, &run).await?;
        transaction.commit().await.map_err(failed)?;
        self.tell(events);
        Ok(())
    }

    async fn append(&self, run: &RunId, what: What) -> Result<Event> {
        self.write(Append { run: run.clone(), fence: None, what, attempt: Attempt::Counts }).await
    }

    async fn append_under(&self, lease: &Lease, what: What) -> Result<Event> {
        let (run, fence) = (lease.run.clone(), Some(lease.fence));
        self.write(Append { run, fence, what, attempt: Attempt::Counts }).await
    }

    async fn give_back(&self, lease: &Lease, what: What) -> Result<Event> {
        let (run, fence) = (lease.run.clone(), Some(lease.fence));
        self.write(Append { run, fence, what, attempt: Attempt::Forgotten }).await
    }

    async fn events(&self, run: &RunId, after: u64, limit: u32) -> Result<Vec<Event>> {
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

    async fn all_events(&self, run: &RunId) -> Result<Vec<Event>> {
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

    fn follow(&self) -> broadcast::Receiver<Event> {
        self.0.told.subscribe()
    }
}

impl Sqlite {
    /// Tells followers. That nobody follows is no error.
    pub(in crate::store) fn tell(&self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            let _ = self.0.told.send(event);
        }
    }
}

/// Writes the row of a new run and its first events. Nothing to fold yet: the row is as these events make it.
pub(in crate::store) async fn insert(connection: &mut SqliteConnection, run: &NewRun) -> Result<[Event; 2]> {
    let failed = |error| explain(&format!("queue run {}", run.id), error);
    let queued = What::RunQueued {
        workflow: run.workflow.clone(),
        trigger: run.trigger,
        inputs: run.inputs.clone(),
        params: run.params.clone(),
        script: run.script.clone(),
        model: run.model.clone(),
        retry_of: run.retry_of.clone(),
    };
    let waiting = What::StateEntered { state: RunState::Queued, reason: None };
    let event = |seq, what| Event { run: run.id.clone(), seq, at: rounded(run.at), what };
    let events = [event(1, queued), event(2, waiting)];
    sqlx::query(
        "INSERT INTO runs (id, workflow, trigger, state, model, script, inputs, input, queued_at, usage, cost_usd,
         params, by_hand, holder, fence, retry_of, content, last_seq)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?14 IS NOT NULL, ?15, ?16, 2)",
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
    .bind(run.by_hand)
    .bind(run.holder.as_ref().map(ToString::to_string))
    .bind(run.retry_of.as_ref().map(RunId::as_str))
    .bind(content(run)?.as_ref().map(Digest::as_str))
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

/// What a run works on, as one hash: its workflow, the content of its files and its params. Nothing for one that works
/// on nothing in particular.
fn content(run: &NewRun) -> Result<Option<Digest>> {
    if run.inputs.is_empty() && run.params.is_empty() {
        return Ok(None);
    }
    let digests: Vec<&Digest> = run.inputs.iter().map(|input| &input.digest).collect();
    Ok(Some(Digest::of(to_json(&(&run.workflow, digests, &run.params))?)))
}

/// An event on its way into the log.
#[derive(Debug)]
pub(in crate::store) struct Append {
    pub(in crate::store) run: RunId,
    /// What it is written under; nothing where the right to needs no proof.
    pub(in crate::store) fence: Option<u64>,
    pub(in crate::store) what: What,
    pub(in crate::store) attempt: Attempt,
}

/// Whether the attempt that an event belongs to counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Attempt {
    Counts,
    Forgotten,
}

/// Adds an event inside a transaction that holds the write lock, so that no place is given twice. A refusal comes before
/// anything is written.
pub(in crate::store) async fn add(
    connection: &mut SqliteConnection,
    append: &Append,
    at: Timestamp,
) -> Result<Event> {
    let run = &append.run;
    let failed = |error| explain(&format!("record an event of run {run}"), error);
    // Without the columns that no event changes: a run's inputs may be many.
    let found = sqlx::query(
        "SELECT workflow, script, state, fence, started_at, ended_at, turns, usage, cost_usd, published, again,
         last_seq FROM runs WHERE id = ?1",
    )
    .bind(run.as_str())
    .fetch_optional(&mut *connection)
    .await
    .map_err(failed)?
    .ok_or_else(|| {
        Diagnostic::new("store::unknown_run", format!("there is no run {run}"))
            .help("`tidemill runs` lists all")
    })?;
    let mut row = folded(&found)?;
    let now = fence(&found)?;
    if append.fence.is_some_and(|fence| fence != now) {
        return Err(Lease::lost(run));
    }
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
        what: append.what.clone(),
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
         cost_usd = ?8, published = ?9, report = ?10, again = ?11, run_at = ?12,
         holder = CASE WHEN ?13 THEN NULL ELSE holder END,
         attempts = CASE WHEN ?15 THEN 0 WHEN ?14 THEN max(attempts - 1, 0) ELSE attempts END WHERE id = ?1",
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
    .bind(row.again.as_ref().map(to_json).transpose()?)
    .bind(row.again.as_ref().map(|again| micros(again.at)))
    .bind(row.lets_go())
    .bind(append.attempt == Attempt::Forgotten)
    .bind(is_progress(&event.what))
    .execute(&mut *connection)
    .await
    .map_err(failed)?;
    let workflow: &str = found.try_get("workflow").map_err(failed)?;
    tell_targets(connection, workflow, &digest(&found, "script")?, &event).await?;
    Ok(event)
}

/// The part of a row that events change.
fn folded(row: &SqliteRow) -> Result<Folded> {
    let failed = |error| explain("read a run", error);
    let state: &str = row.try_get("state").map_err(failed)?;
    Ok(Folded {
        state: RunState::parse(state).ok_or_else(|| unreadable("a run's state"))?,
        started_at: moment(row, "started_at")?,
        ended_at: moment(row, "ended_at")?,
        turns: row.try_get("turns").map_err(failed)?,
        usage: json(row.try_get("usage").map_err(failed)?, "a run's usage")?,
        cost: row.try_get::<Option<f64>, _>("cost_usd").map_err(failed)?.map(Cost::from_usd),
        published: row.try_get("published").map_err(failed)?,
        report: None,
        again: again(row)?,
    })
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
