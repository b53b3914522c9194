//! Two ways to stop: finish what runs, or break it off.

use tokio_util::sync::CancellationToken;

/// Tells the daemon to stop. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    finish: CancellationToken,
    interrupt: CancellationToken,
}

impl Stop {
    /// Nothing is stopped yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Nothing new begins; runs in work finish.
    pub fn finish(&self) {
        self.finish.cancel();
    }

    /// Runs in work are broken off as well, and go on next time.
    pub fn interrupt(&self) {
        self.finish.cancel();
        self.interrupt.cancel();
    }

    /// Whether nothing new may begin.
    pub fn is_finishing(&self) -> bool {
        self.finish.is_cancelled()
    }

    /// Whether runs are being broken off.
    pub fn is_interrupting(&self) -> bool {
        self.interrupt.is_cancelled()
    }

    /// Waits until nothing new may begin.
    pub async fn finishing(&self) {
        self.finish.cancelled().await;
    }

    /// Waits until runs are to be broken off.
    pub async fn interrupting(&self) {
        self.interrupt.cancelled().await;
    }

    /// What a run is given to watch.
    pub fn token(&self) -> CancellationToken {
        self.interrupt.clone()
    }
}
