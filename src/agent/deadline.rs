//! When work must be done: a wall limit and a stop from outside, raced against everything that waits.

use std::time::Duration;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::clock::Clock;

/// The end of a run's time.
#[derive(Debug, Clone)]
pub struct Deadline {
    clock: Arc<dyn Clock>,
    stop: CancellationToken,
    start: Duration,
    wall: Duration,
    used: Duration,
}

/// Why waiting ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The wall limit.
    Wall,
    /// A stop from outside.
    Stopped,
}

impl Deadline {
    /// Time kept back for the closing turn: a tenth of the wall limit, this much at most.
    const CLOSING: Duration = Duration::from_secs(60);

    /// Starts counting now.
    pub fn new(clock: Arc<dyn Clock>, stop: CancellationToken, wall: Duration) -> Self {
        Self::after(clock, stop, wall, Duration::ZERO)
    }

    /// Starts counting now, with so much of it used before.
    pub fn after(clock: Arc<dyn Clock>, stop: CancellationToken, wall: Duration, used: Duration) -> Self {
        let start = clock.elapsed();
        Self { clock, stop, start, wall, used }
    }

    /// The whole limit.
    pub fn wall(&self) -> Duration {
        self.wall
    }

    /// Time left for work, the closing turn's share set aside.
    pub fn left(&self) -> Duration {
        self.left_in_all().saturating_sub(Self::CLOSING.min(self.wall / 10))
    }

    /// Time left, the closing turn's share included.
    pub fn left_in_all(&self) -> Duration {
        let now = self.clock.elapsed().saturating_sub(self.start);
        self.wall.saturating_sub(self.used.saturating_add(now))
    }

    /// Waits for `work`, until its time is over or a stop comes.
    pub async fn race<T>(&self, work: impl Future<Output = T>) -> Result<T, Cut> {
        self.race_for(self.left(), work).await
    }

    /// As [`Deadline::race`], with the closing turn's share.
    pub async fn race_closing<T>(&self, work: impl Future<Output = T>) -> Result<T, Cut> {
        self.race_for(self.left_in_all(), work).await
    }

    async fn race_for<T>(&self, left: Duration, work: impl Future<Output = T>) -> Result<T, Cut> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(Cut::Stopped),
            done = work => Ok(done),
            () = self.clock.sleep(left) => Err(Cut::Wall),
        }
    }
}
