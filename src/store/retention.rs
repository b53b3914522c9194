//! Forgetting what ended long ago: runs with their events, and inputs that have no run left.

use std::collections::HashSet;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::diagnostic::Result;
use crate::event::id::{Digest, RunId};

/// What may be forgotten.
#[async_trait]
pub trait Retention: Send + Sync {
    /// The runs that ended before `before` and can be forgotten, oldest first.
    async fn outlived(&self, before: Timestamp) -> Result<Vec<RunId>>;

    /// How many inputs can be forgotten with the runs that ended before `before`.
    async fn outlived_inputs(&self, before: Timestamp) -> Result<u64>;

    /// Forgets runs with all their events, in one transaction.
    async fn forget_runs(&self, runs: &[RunId]) -> Result<()>;

    /// Forgets the inputs that were through before `before` and have no run, with their changes.
    async fn forget_inputs(&self, before: Timestamp) -> Result<()>;

    /// Every hash that the log or a row mentions, but for runs that ended before `before` and can be forgotten.
    ///
    /// Whatever looks like a hash counts as one: a blob too many is kept rather than one too few.
    async fn mentioned(&self, before: Option<Timestamp>) -> Result<HashSet<Digest>>;
}
