//! How the runs of a workflow stand in the queue.

use std::time::Duration;

/// What a script says about its runs in the queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Queueing {
    /// Runs of a higher one begin first.
    pub priority: i64,
    /// Runs of it at once; as many as the project allows when absent.
    pub concurrency: Option<usize>,
    /// What happens when a service fails.
    pub retry: Retry,
}

/// How often and when a run is tried again that failed by a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Tries in all, from 1.
    pub attempts: u32,
    /// The first wait; each further one is twice as long.
    pub backoff: Duration,
    /// The longest.
    pub max_backoff: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 3, backoff: Duration::from_secs(30), max_backoff: Duration::from_secs(10 * 60) }
    }
}
