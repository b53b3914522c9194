//! What people ask of the queue as a whole. It is written down, so that it holds for the next process as well.

use async_trait::async_trait;
use sqlx::Row as _;

use crate::diagnostic::Result;
use crate::owner::Owner;
use crate::store::controls::{Controls, Paused};
use crate::store::sqlite::Sqlite;
use crate::store::sqlite::column::micros;
use crate::store::sqlite::error::explain;

/// Stands for every workflow; no workflow has an empty name.
const ALL: &str = "";

#[async_trait]
impl Controls for Sqlite {
    async fn pause(&self, workflow: Option<&str>) -> Result<()> {
        self.control("pause", workflow.unwrap_or(ALL)).await
    }

    async fn resume(&self, workflow: Option<&str>) -> Result<bool> {
        let writer = &mut *self.0.writer.lock().await;
        sqlx::query("DELETE FROM controls WHERE word = 'pause' AND (?1 IS NULL OR target = ?1)")
            .bind(workflow)
            .execute(writer)
            .await
            .map(|done| done.rows_affected() > 0)
            .map_err(|error| explain("let runs begin again", error))
    }

    async fn paused(&self) -> Result<Paused> {
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

    async fn drain(&self, holder: &str) -> Result<()> {
        self.control("drain", holder).await
    }

    async fn is_to_drain(&self, holder: &Owner) -> Result<bool> {
        sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM controls WHERE word = 'drain' AND target = ?1)")
            .bind(holder.to_string())
            .fetch_one(&self.0.readers)
            .await
            .map_err(|error| explain("look whether this process is to end", error))
    }

    async fn forget_drains(&self) -> Result<()> {
        let writer = &mut *self.0.writer.lock().await;
        sqlx::query("DELETE FROM controls WHERE word = 'drain'")
            .execute(writer)
            .await
            .map(drop)
            .map_err(|error| explain("forget what dead processes were asked", error))
    }
}

impl Sqlite {
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
