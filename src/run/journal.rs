//! A run's log on its way to the store, cleaned of secrets.

use std::path::Path;

use async_trait::async_trait;

use crate::agent;
use crate::config::Project;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::What;
use crate::event::payload::Payload;
use crate::event::state::RunState;
use crate::run::models::{self, env};
use crate::run::redact::Redactor;
use crate::store::{Lease, RunRow, Store};

/// Appends the events of one run.
#[derive(Debug, Clone)]
pub struct Journal {
    store: Store,
    lease: Lease,
    redactor: Redactor,
}

impl Journal {
    /// For a run of a project, whose secrets are kept out. It writes for as long as nobody else takes the run.
    pub fn of(project: &Project, store: &Store, run: &RunRow) -> Self {
        Self { store: store.clone(), lease: run.lease(), redactor: models::redactor(project) }
    }

    /// The same journal, which keeps the values of these variables out as well.
    #[must_use]
    pub fn guarding(&self, secrets: Vec<String>) -> Self {
        Self { redactor: self.redactor.and(secrets, &env), ..self.clone() }
    }

    /// Ends a run that could not end by itself.
    pub async fn fail(&self, run: &RunRow, why: &Diagnostic) -> Result<()> {
        self.end(run, RunState::Failed, why).await
    }

    /// Ends a run that a person does not want any more.
    pub async fn cancel(&self, run: &RunRow) -> Result<()> {
        let why =
            Diagnostic::new("run::cancelled", "it was cancelled").help("`tidemill retry` runs it once more");
        self.end(run, RunState::Cancelled, &why).await
    }

    async fn end(&self, run: &RunRow, state: RunState, why: &Diagnostic) -> Result<()> {
        let (usage, cost) = (run.usage, run.cost);
        agent::Journal::append(self, What::RunEnded { state, report: Some(why.report()), usage, cost }).await
    }

    /// Records that the run enters a state.
    pub async fn enter(&self, state: RunState) -> Result<()> {
        agent::Journal::append(self, What::StateEntered { state, reason: None }).await
    }
}

#[async_trait]
impl agent::Journal for Journal {
    async fn append(&self, what: What) -> Result<()> {
        let what = clean(what, &self.redactor)?;
        self.store.append_under(&self.lease, what).await.map(drop)
    }

    fn clean(&self, text: &str) -> String {
        self.redactor.clean(text)
    }

    async fn payload(&self, text: &str) -> Result<Payload> {
        self.store.payload(&self.redactor.clean(text)).await
    }

    async fn keep(&self, file: &Path) -> Result<Payload> {
        let unreadable = |error: std::io::Error| {
            Diagnostic::new("run::keep", "the whole output of a command cannot be kept").cause(error)
        };
        let bytes = tokio::fs::read(file).await.map_err(unreadable)?;
        let text = String::from_utf8_lossy(&bytes);
        let (digest, size) = if self.redactor.finds(&text) {
            let clean = self.redactor.clean(&text);
            let size = clean.len() as u64;
            (self.store.blobs().put(clean).await?, size)
        } else {
            self.store.blobs().put_file(file).await?
        };
        Ok(Payload::Blob { digest, size, preview: String::new() })
    }
}

/// An event is only taken apart when a secret really occurs in it.
fn clean(what: What, redactor: &Redactor) -> Result<What> {
    let unreadable = |error: serde_json::Error| {
        Diagnostic::new("run::event", format!("an event cannot be written as JSON: {error}"))
    };
    let text = serde_json::to_string(&what).map_err(unreadable)?;
    if redactor.finds(&text) {
        serde_json::from_str(&redactor.clean(&text)).map_err(unreadable)
    } else {
        Ok(what)
    }
}
