//! Requests of webhooks: which of them made runs.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::diagnostic::Result;
use crate::event::id::{Digest, RunId};
use crate::store::run::NewRun;

/// What tells a request from others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestKey<'a> {
    /// The webhook's path.
    pub hook: &'a str,
    /// Hash of the sender's id for it, or of all of it.
    pub digest: &'a Digest,
    /// How long a repeat counts as one; for ever when nothing.
    pub window: Option<Duration>,
}

/// Whether a request made a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// The one that was handed in.
    Now,
    /// It had made this one before.
    Before(RunId),
}

/// Requests that started runs.
#[async_trait]
pub trait Requests: Send + Sync {
    /// The run that the same request made before, as it counts at `now`.
    async fn heard(&self, key: &RequestKey<'_>, now: Timestamp) -> Result<Option<RunId>>;

    /// Queues the run of a request and records that it made one, in one transaction. Where it has made one before,
    /// nothing is written.
    async fn hear(&self, key: &RequestKey<'_>, run: &NewRun) -> Result<Heard>;
}
