//! The loop breaker: one path that is taken again and again is dropped by something that answers to what we do.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use crate::event::input::RawPath;

/// How often each path was taken lately.
#[derive(Debug)]
pub struct Loops {
    limit: usize,
    taken: HashMap<RawPath, VecDeque<Duration>>,
}

impl Loops {
    /// The time within which it is counted.
    pub const WINDOW: Duration = Duration::from_secs(60);

    /// A path that was taken too often is left alone for so long.
    pub const REST: Duration = Duration::from_secs(5 * 60);

    /// A path may be taken `limit` times within [`Loops::WINDOW`].
    pub fn new(limit: usize) -> Self {
        Self { limit, taken: HashMap::new() }
    }

    /// Whether `path` was taken too often to be taken once more at `now`.
    pub fn is_looping(&mut self, path: &RawPath, now: Duration) -> bool {
        let Some(times) = self.taken.get_mut(path) else {
            return false;
        };
        while times.front().is_some_and(|time| *time + Self::WINDOW <= now) {
            times.pop_front();
        }
        if times.is_empty() {
            self.taken.remove(path);
            return false;
        }
        times.len() >= self.limit
    }

    /// It was taken.
    pub fn took(&mut self, path: &RawPath, now: Duration) {
        if self.taken.len() > 10_000 {
            self.taken.retain(|_, times| times.back().is_some_and(|time| *time + Self::WINDOW > now));
        }
        self.taken.entry(path.clone()).or_default().push_back(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_taken_so_often_in_a_minute_and_no_more() {
        let mut loops = Loops::new(3);
        let (a, b) = (RawPath::new("a"), RawPath::new("b"));
        for second in 0..3 {
            assert!(!loops.is_looping(&a, Duration::from_secs(second)));
            loops.took(&a, Duration::from_secs(second));
        }
        assert!(
            loops.is_looping(&a, Duration::from_secs(3)) && !loops.is_looping(&b, Duration::from_secs(3))
        );
        assert!(
            loops.is_looping(&a, Duration::from_secs(59)) && !loops.is_looping(&a, Duration::from_secs(60))
        );
    }
}
