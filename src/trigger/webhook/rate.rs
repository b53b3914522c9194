//! How often something may happen.

use std::time::Duration;

/// Lets so much through a second on average, and what a second holds at once.
#[derive(Debug, Clone)]
pub struct Rate {
    a_second: f64,
    left: f64,
    /// When `left` was counted, by the clock's elapsed time.
    at: Duration,
}

impl Rate {
    /// `a_second` is above zero.
    pub fn new(a_second: f64) -> Self {
        Self { a_second, left: a_second.max(1.0), at: Duration::ZERO }
    }

    /// Takes one at `now`, or says how long to wait for it.
    pub fn take(&mut self, now: Duration) -> Result<(), Duration> {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        self.at = now.max(self.at);
        self.left = (self.left + passed * self.a_second).min(self.a_second.max(1.0));
        if self.left >= 1.0 {
            self.left -= 1.0;
            return Ok(());
        }
        Err(Duration::try_from_secs_f64((1.0 - self.left) / self.a_second).unwrap_or(Duration::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_waits_and_a_trickle_does_not() {
        let mut rate = Rate::new(2.0);
        let second = Duration::from_secs;
        assert_eq!([rate.take(second(1)), rate.take(second(1))], [Ok(()), Ok(())]);
        assert_eq!(rate.take(second(1)), Err(Duration::from_millis(500)));
        assert_eq!(rate.take(Duration::from_millis(1500)), Ok(()));
        // However long nothing came, a second's worth is all there is.
        assert_eq!([rate.take(second(99)), rate.take(second(99))], [Ok(()), Ok(())]);
        assert!(rate.take(second(99)).is_err());
    }

    #[test]
    fn less_than_one_a_second_is_one_now_and_then() {
        let mut rate = Rate::new(0.1);
        assert_eq!(rate.take(Duration::ZERO), Ok(()));
        assert_eq!(rate.take(Duration::ZERO).map_err(|wait| wait.as_secs()), Err(10));
        assert_eq!(rate.take(Duration::from_secs(10)), Ok(()));
    }
}
