//! Time as something handed in: the wall clock and waiting, so that tests never sleep.

use std::fmt;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use jiff::Timestamp;

/// Where a scene gets its time from.
#[async_trait]
pub trait Clock: Send + Sync + fmt::Debug {
    /// Now, by the wall clock: for people and records, never for durations.
    fn now(&self) -> Timestamp;

    /// Time since an arbitrary start, never going back: for durations and deadlines.
    fn elapsed(&self) -> Duration;

    /// Waits for `duration`.
    async fn sleep(&self, duration: Duration);
}

/// The machine's own clock.
#[derive(Debug)]
pub struct SystemClock(Instant);

impl SystemClock {
    /// A clock that starts counting now.
    pub fn new() -> Self {
        Self(Instant::now())
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}
