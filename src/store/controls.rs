//! What people ask of the queue as a whole. It is written down, so that it holds for the next process as well.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use sqlx::Row as _;

use crate::diagnostic::Result;
use crate::owner::Owner;
use crate::store::Store;
use crate::store::column::micros;
use crate::store::error::explain;

/// Which runs do not begin because somebody said so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paused {
    /// None does.
    pub all: bool,
    /// Those of these workflows do not.
    pub workflows: BTreeSet<String>,
}

impl Paused {
    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        !self.all && self.workflows.is_empty()
    }
}

/// Stands for every workflow; no workflow has an empty name.
const ALL: &str = "";

impl Store {
    /// Lets no run begin from now on: none of `workflow`, or none at all.
    pub async fn pause(&self, workflow: Option<&str>) -> Result<()> {
        self.control("pause", workflow.unwrap_or(ALL)).await
    }

    /// Lets runs begin again: those of `workflow`, or all, whatever was paused. Gives whether anything was.
    pub async fn resume(&self, workflow: Option<&str>) -> Result<bool> {
        let writer = &mut *self.0.writer.lock().await;
        sqlx::query("DELETE FROM controls WHERE word = 'pause' AND (?1 IS NULL OR target = ?1)")
            .bind(workflow)
            .execute(writer)
            .await
            .map(|done| done.rows_affected() > 0)
            .map_err(|error| explain("let runs begin again", error))
    }

    /// What is paused.
    pub async fn paused(&self) -> Result<Paused> {
        let failed = |error| explain("read what is paused", error);
        let mut paused = Paused::default();
        for row in sqlx::query("SELECT target FROM controls WHERE word = 'pause'")
            .fetch_all(&self.0.readers)
            .await
            .map_err(failed)?
        {
            match row.try_get::<String, _>("target").map_err(failed)? {
                all if all == ALL => paused.all = true,
                workflow => {
                    paused.workflows.insert(workflow);
                }
            }
        }
        Ok(paused)
    }

    /// Has a process end when its runs have.
    pub async fn drain(&self, holder: &str) -> Result<()> {
        self.control("drain", holder).await
    }

    /// Whether this process is to end when its runs have.
    pub async fn is_to_drain(&self, holder: &Owner) -> Result<bool> {
        sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM controls WHERE word = 'drain' AND target = ?1)")
            .bind(holder.to_string())
            .fetch_one(&self.0.readers)
            .await
            .map_err(|error| explain("look whether this process is to end", error))
    }

    /// Forgets what processes were asked that are gone.
    pub async fn forget_drains(&self) -> Result<()> {
        let writer = &mut *self.0.writer.lock().await;
        sqlx::query("DELETE FROM controls WHERE word = 'drain'")
            .execute(writer)
            .await
            .map(drop)
            .map_err(|error| explain("forget what dead processes were asked", error))
    }

    async fn control(&self, word: &str, target: &str) -> Result<()> {
        let writer = &mut *self.0.writer.lock().await;
        sqlx::query("INSERT INTO controls (word, target, at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING")
            .bind(word)
            .bind(target)
            .bind(micros(self.0.clock.now()))
            .execute(writer)
            .await
            .map(drop)
            .map_err(|error| explain(&format!("record `{word}`"), error))
    }
}
