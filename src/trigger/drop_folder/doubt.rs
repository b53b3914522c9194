//! Whether an empty inbox is believed.

use std::time::Duration;

/// An empty inbox on another disk than everything that is known looks like the folder on which a disk was mounted.
/// That is believed only when it stays so.
#[derive(Debug)]
pub(super) struct Doubt {
    patience: Duration,
    since: Option<Duration>,
}

impl Doubt {
    /// Doubts for as long as `patience`.
    pub(super) fn new(patience: Duration) -> Self {
        Self { patience, since: None }
    }

    /// Nothing looks odd any more.
    pub(super) fn end(&mut self) {
        self.since = None;
    }

    /// It looks odd at `now`: whether it is still doubted.
    pub(super) fn goes_on(&mut self, now: Duration) -> bool {
        let since = *self.since.get_or_insert(now);
        now < since + self.patience
    }
}
