//! What was worked on again and again, and never came to a good end.

use async_trait::async_trait;

use crate::diagnostic::Result;
use crate::event::id::RunId;
use crate::event::state::RunState;
use crate::store::quarantine::Quarantine;
use crate::store::run::RunRow;
use crate::store::sqlite::Sqlite;
use crate::store::sqlite::error::explain;
use crate::store::sqlite::run::decode;

/// Runs that say how a piece of work went: not those nobody let begin, nor those for which a key was missing.
const TELLING: &str = "ended_at IS NOT NULL AND state <> 'cancelled'
    AND coalesce(json_extract(report, '$.code'), '') NOT IN ('queue::quarantined', 'model::no_key')";

#[async_trait]
impl Quarantine for Sqlite {
    async fn failed_in_a_row(&self, run: &RunId, most: u32) -> Result<Vec<RunRow>> {
        self.in_a_row(run, "earlier.number < this.number", most).await
    }

    async fn quarantined(&self, most: u32) -> Result<Vec<Vec<RunRow>>> {
        let sql = format!(
            "WITH ranked AS (
                 SELECT id, content, state, number,
                     row_number() OVER (PARTITION BY content, script ORDER BY number DESC) AS place
                 FROM runs WHERE content IS NOT NULL AND {TELLING} AND script = (
                     SELECT script FROM runs AS newest WHERE newest.workflow = runs.workflow
                     ORDER BY number DESC LIMIT 1)
             )
             SELECT id, max(number) AS newest FROM ranked WHERE place <= ?1 GROUP BY content
             HAVING count(*) = ?1 AND sum(state = 'succeeded') = 0 ORDER BY newest DESC"
        );
        let newest: Vec<String> = sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
            .bind(most)
            .fetch_all(&self.0.readers)
            .await
            .map_err(|error| explain("look for what fails again and again", error))?;
        let mut found = Vec::with_capacity(newest.len());
        for run in newest.iter().filter_map(|id| RunId::parse(id)) {
            found.push(self.in_a_row(&run, "earlier.number <= this.number", most).await?);
        }
        Ok(found)
    }
}

impl Sqlite {
    async fn in_a_row(&self, run: &RunId, up_to: &str, most: u32) -> Result<Vec<RunRow>> {
        let sql = format!(
            "SELECT earlier.* FROM runs AS this CROSS JOIN (SELECT * FROM runs WHERE {TELLING}) AS earlier
             ON earlier.content = this.content AND earlier.script = this.script AND {up_to}
             WHERE this.id = ?1 ORDER BY earlier.number DESC LIMIT ?2"
        );
        let rows: Vec<RunRow> = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(run.as_str())
            .bind(most)
            .fetch_all(&self.0.readers)
            .await
            .map_err(|error| explain("look for what fails again and again", error))?
            .iter()
            .map(decode)
            .collect::<Result<_>>()?;
        let is_in_a_row = u32::try_from(rows.len()).is_ok_and(|count| count == most && most > 0)
            && rows.iter().all(|row| row.state != RunState::Succeeded);
        Ok(if is_in_a_row { rows } else { Vec::new() })
    }
}
