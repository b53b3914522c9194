//! When which part of the inbox is looked at without a hint.

use std::path::Path;
use std::time::Duration;

use crate::trigger::drop_folder::scan::Scan;
use crate::trigger::drop_folder::scope::{Depth, Scope};

/// The times of the next looks, by a clock that is never set back.
#[derive(Debug)]
pub struct Pace {
    rescan: Duration,
    whole: Duration,
    poll: Duration,
}

impl Pace {
    /// The inbox itself is looked for this often: it may be replaced, go and come back.
    const ROOT: Duration = Duration::from_secs(2);

    /// Folders without file events are looked at no more often than this.
    const POLL_SOONEST: Duration = Duration::from_secs(2);

    /// Folders without file events are looked at this often, however long a look takes.
    const POLL_LATEST: Duration = Duration::from_secs(10);

    /// Between these, polling takes no more than this part of the time.
    const POLL_SHARE: u32 = 10;

    /// A file that a look should have shown and did not is looked for again after this.
    const OVERDUE: Duration = Duration::from_secs(1);

    /// The whole inbox is looked at every `rescan`, and at once.
    pub fn new(rescan: Duration) -> Self {
        Self { rescan, whole: Duration::ZERO, poll: Duration::ZERO }
    }

    /// The whole inbox is to be looked at as soon as may be: what counts has changed.
    pub fn anew(&mut self) {
        self.whole = Duration::ZERO;
    }

    /// What is to be looked at `now`, given the folders without file events.
    pub fn asked<'a>(&self, now: Duration, polled: impl Iterator<Item = &'a Path>) -> Scope {
        if now >= self.whole {
            return Scope::All;
        }
        let mut scope = Scope::none();
        if now >= self.poll {
            polled.for_each(|folder| scope.add(folder, Depth::Subtree));
        }
        scope
    }

    /// A look that took from `began` to `ended` has brought `scan`.
    pub fn looked(&mut self, scan: &Scan, began: Duration, ended: Duration) {
        if scan.scope == Scope::All {
            self.whole = ended + self.rescan;
        }
        if began >= self.poll || scan.scope == Scope::All {
            let pause = ended.saturating_sub(began).saturating_mul(Self::POLL_SHARE);
            self.poll = ended + pause.clamp(Self::POLL_SOONEST, Self::POLL_LATEST);
        }
    }

    /// How long nothing has to be looked at: since `began` everything was that had to be, it is `now`, and the next
    /// file may become complete at `due`.
    pub fn nap(&self, began: Duration, now: Duration, due: Option<Duration>) -> Duration {
        let due = due.map(|due| if due <= began { Self::OVERDUE } else { due.saturating_sub(now) });
        let whole = self.whole.saturating_sub(now);
        // Polls need no time of their own: they are due soon enough when the inbox itself is.
        due.unwrap_or(whole).min(whole).min(Self::ROOT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trigger::drop_folder::looked::Looked;
    use crate::trigger::drop_folder::scan::Root;

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn scan(scope: Scope) -> Scan {
        Scan { scope, root: Root::Absent, found: Vec::new(), looked: Looked::default() }
    }

    fn polled() -> impl Iterator<Item = &'static Path> {
        ["a", "b"].into_iter().map(Path::new)
    }

    #[test]
    fn the_whole_inbox_at_once_and_then_every_rescan() {
        let mut pace = Pace::new(secs(60));
        assert_eq!(pace.asked(secs(0), std::iter::empty()), Scope::All);
        pace.looked(&scan(Scope::All), secs(0), secs(1));
        assert_eq!(pace.asked(secs(60), std::iter::empty()), Scope::none());
        assert_eq!(pace.asked(secs(61), std::iter::empty()), Scope::All);
        assert_eq!(pace.nap(secs(0), secs(1), None), secs(2));
        assert_eq!(pace.nap(secs(60), secs(60), None), secs(1));
    }

    #[test]
    fn folders_without_events_are_polled_the_slower_the_longer_it_takes() {
        for (took, pause) in [(0, 2), (500, 5), (20_000, 10)] {
            let mut pace = Pace::new(secs(600));
            let ended = Duration::from_millis(took);
            pace.looked(&scan(Scope::All), secs(0), ended);
            let next = ended + secs(pause);
            let before = next.saturating_sub(Duration::from_millis(1));
            assert!(pace.asked(before, polled()).is_none(), "{took}");
            let scope = pace.asked(next, polled());
            assert_eq!(scope.folders(), [("a".into(), Depth::Subtree), ("b".into(), Depth::Subtree)]);
            // A hint in between does not put it off.
            pace.looked(&scan(Scope::none()), before, next);
            assert_eq!(pace.asked(next, polled()).count(), Some(2));
        }
    }

    #[test]
    fn a_file_is_looked_at_when_it_is_due_and_not_without_a_pause() {
        let mut pace = Pace::new(secs(60));
        pace.looked(&scan(Scope::All), secs(0), secs(0));
        let nap = |due| pace.nap(secs(5), secs(6), Some(due));
        assert_eq!(nap(secs(7)), secs(1));
        // It became due during the look.
        assert_eq!(nap(Duration::from_millis(5500)), Duration::ZERO);
        // The look was made for it and did not show it.
        assert_eq!(nap(secs(5)), Pace::OVERDUE);
    }
}
