//! The end of a run, for a sender who waits for it.

use std::time::Duration;

use serde::Serialize;

use crate::clock::Clock;
use crate::diagnostic::Result;
use crate::event::What;
use crate::event::id::RunId;
use crate::event::state::RunState;
use crate::run::intake::stop::Stop;
use crate::store::{RunRow, Store};

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct End {
    /// Which.
    pub run: RunId,
    /// How.
    pub state: RunState,
    /// Why, for every end but success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
    /// Root-relative folder of what was published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<String>,
    /// Names of what was published, in that folder.
    pub artifacts: Vec<String>,
    /// What the agent said last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

impl End {
    /// Another process may end the run, and tells nobody.
    const LOOK: Duration = Duration::from_secs(1);

    /// The end of `run`, when it comes within `wait` and before nothing new may begin.
    pub(super) async fn within(
        store: &Store,
        clock: &dyn Clock,
        stop: &Stop,
        run: &RunId,
        wait: Duration,
    ) -> Result<Option<Self>> {
        let until = clock.elapsed() + wait;
        // Before the first look, so that no end comes in between.
        let mut told = store.follow();
        loop {
            if let Some(row) = store.run(run).await?.filter(|row| row.state.is_end()) {
                return Self::of(store, &row).await.map(Some);
            }
            let left = until.saturating_sub(clock.elapsed());
            if left.is_zero() || stop.is_finishing() {
                return Ok(None);
            }
            let ended = async {
                loop {
                    match told.recv().await {
                        Ok(event) if event.run != *run || !matches!(event.what, What::RunEnded { .. }) => {}
                        // Whoever lags looks.
                        _ => break,
                    }
                }
            };
            tokio::select! {
                () = ended => {}
                () = clock.sleep(left.min(Self::LOOK)) => {}
                () = stop.finishing() => {}
            }
        }
    }

    async fn of(store: &Store, row: &RunRow) -> Result<Self> {
        let mut end = Self {
            run: row.id.clone(),
            state: row.state,
            report: row.report.as_ref().map(|report| report.message.clone()),
            published: row.published.clone(),
            artifacts: Vec::new(),
            answer: None,
        };
        for event in store.all_events(&row.id).await? {
            match event.what {
                What::Published { folder, artifacts } => {
                    let name = |path: &String| {
                        path.strip_prefix(&folder)
                            .map_or(path.as_str(), |name| name.trim_start_matches('/'))
                            .to_owned()
                    };
                    end.artifacts = artifacts.iter().map(name).collect();
                }
                What::ModelResponded { text, calls, .. } if calls.is_empty() => {
                    end.answer = Some(store.text(&text).await?).filter(|text| !text.is_empty());
                }
                _ => {}
            }
        }
        Ok(end)
    }
}
