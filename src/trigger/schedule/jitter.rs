//! How much later than its instant a run starts.

use std::time::Duration;

use jiff::Timestamp;

use crate::event::id::Digest;

/// A part of `most`, in milliseconds: always the same for a schedule and an instant, so that a restart cannot put it off
/// for ever.
pub(super) fn jitter(id: &str, at: Timestamp, most: Duration) -> Duration {
    let millis = u64::try_from(most.as_millis()).unwrap_or(u64::MAX);
    if millis == 0 {
        return Duration::ZERO;
    }
    let digest = Digest::of(format!("{id} {}", at.as_millisecond()));
    let number = u64::from_str_radix(&digest.as_str()[..16], 16).unwrap_or_default();
    Duration::from_millis(number % millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_spread_and_never_rolled_again() {
        let most = Duration::from_secs(600);
        let at = |hour: i64| Timestamp::from_second(hour * 3600).unwrap();
        let parts: Vec<Duration> = (0..100).map(|hour| jitter("report/1", at(hour), most)).collect();
        let again: Vec<Duration> = (0..100).map(|hour| jitter("report/1", at(hour), most)).collect();
        assert_eq!(parts, again);
        assert!(parts.iter().all(|part| *part < most));
        let halves = parts.iter().filter(|part| **part < most / 2).count();
        assert!((25..75).contains(&halves), "{halves} of 100 in the first half");
        assert_ne!(jitter("report/2", at(0), most), parts[0]);
        // What it is today is what it was when the instant was first seen, by whichever version.
        assert_eq!(jitter("report/1", at(0), most).as_millis(), 319_028);
    }

    #[test]
    fn none_is_none() {
        assert_eq!(jitter("a/1", Timestamp::UNIX_EPOCH, Duration::ZERO), Duration::ZERO);
    }
}
