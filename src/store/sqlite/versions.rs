//! Which version of each workflow is in force, and since when.

use async_trait::async_trait;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use crate::diagnostic::Result;
use crate::store::sqlite::Sqlite;
use crate::store::sqlite::column::{digest, instant, json, micros, to_json};
use crate::store::sqlite::error::explain;
use crate::store::versions::{Version, Versions};

#[async_trait]
impl Versions for Sqlite {
    async fn know_versions(&self, versions: &[Version]) -> Result<()> {
        let failed = |error| explain("record the workflows' versions", error);
        let names: Vec<&str> = versions.iter().map(|version| version.workflow.as_str()).collect();
        let mut writer = self.0.writer.lock().await;
        let mut transaction = self.begin(&mut writer).await.map_err(failed)?;
        sqlx::query("DELETE FROM workflow_versions WHERE workflow NOT IN (SELECT value FROM json_each(?1))")
            .bind(to_json(&names)?)
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
        for version in versions {
            sqlx::query(
                "INSERT INTO workflow_versions (workflow, bundle, since, broken) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (workflow) DO UPDATE SET broken = excluded.broken, bundle = excluded.bundle,
                 since = CASE WHEN bundle = excluded.bundle THEN since ELSE excluded.since END",
            )
            .bind(&version.workflow)
            .bind(version.bundle.as_str())
            .bind(micros(version.since))
            .bind(version.broken.as_ref().map(to_json).transpose()?)
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
        }
        transaction.commit().await.map_err(failed)
    }

    async fn versions(&self) -> Result<Vec<Version>> {
        sqlx::query("SELECT * FROM workflow_versions ORDER BY workflow")
            .fetch_all(&self.0.readers)
            .await
            .map_err(|error| explain("read the workflows' versions", error))?
            .iter()
            .map(decode)
            .collect()
    }
}

fn decode(row: &SqliteRow) -> Result<Version> {
    let failed = |error| explain("read a workflow's version", error);
    let broken: Option<&str> = row.try_get("broken").map_err(failed)?;
    Ok(Version {
        workflow: row.try_get("workflow").map_err(failed)?,
        bundle: digest(row, "bundle")?,
        since: instant(row, "since")?,
        broken: broken.map(|text| json(text, "a report")).transpose()?,
    })
}
