//! When a message is tried again, by the schedule of Standard Webhooks.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, fmt::rfc2822};

use super::send::Sent;
use crate::store::{Attempted, DeliveryState};
use crate::workflow::schedule::later;

const HOUR: u64 = 3_600;

/// Seconds before each attempt but the first, counted from the one before it: three days and more in all.
const WAITS: [u64; 9] = [5, 5 * 60, 30 * 60, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR];

/// A wait is longer by up to this part of it, so that what failed together does not come back together.
const JITTER: f64 = 0.1;

/// A server cannot have a message put off for longer.
const LONGEST: Duration = Duration::from_secs(24 * HOUR);

/// The status by which a target says that it is gone.
const GONE: u16 = 410;

/// What becomes of a message that was tried `before` times and now came to this.
pub(super) fn decide(before: u32, sent: Sent, now: Timestamp) -> Attempted {
    let Sent { status, answer, retry_after, error } = sent;
    let error = error.or_else(|| status.and_then(complaint));
    let wait = usize::try_from(before).ok().and_then(|before| WAITS.get(before)).copied();
    let (state, due) = match (status, wait) {
        (Some(200..=299), _) => (DeliveryState::Delivered, now),
        (Some(GONE), _) => (DeliveryState::Gone, now),
        (_, None) => (DeliveryState::Failed, now),
        (_, Some(wait)) => {
            let wait = Duration::from_secs(wait).mul_f64(1.0 + JITTER * fastrand::f64());
            let asked = retry_after.and_then(|text| asked(&text, now)).unwrap_or_default().min(LONGEST);
            (DeliveryState::Waiting, later(now, wait.max(asked)))
        }
    };
    Attempted { state, due, status, answer, error }
}

/// Why an answer is none that was wanted.
fn complaint(status: u16) -> Option<String> {
    match status {
        200..=299 => None,
        300..=399 => Some(format!("it answered {status}, and redirects are not followed")),
        GONE => Some("it answered 410: it is gone".to_owned()),
        _ => Some(format!("it answered {status}")),
    }
}

/// `Retry-After`: seconds, or a date.
fn asked(text: &str, now: Timestamp) -> Option<Duration> {
    if let Ok(seconds) = text.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = rfc2822::DateTimeParser::new().parse_timestamp(text.trim()).ok()?;
    let wait: SignedDuration = date.duration_since(now);
    Duration::try_from(wait).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16, retry_after: Option<&str>) -> Sent {
        Sent { status: Some(status), retry_after: retry_after.map(str::to_owned), ..Sent::default() }
    }

    fn now() -> Timestamp {
        "2026-11-30T23:00:00Z".parse().unwrap()
    }

    fn waits(before: u32, sent: Sent) -> u64 {
        let came = decide(before, sent, now());
        assert_eq!(came.state, DeliveryState::Waiting, "{before}");
        came.due.duration_since(now()).as_secs().unsigned_abs()
    }

    #[test]
    fn waits_grow_and_end() {
        for (before, wait) in (0..).zip(WAITS) {
            let waited = waits(before, answered(500, None));
            assert!((wait..=wait + wait / 10).contains(&waited), "{before}: {waited}");
        }
        let last = decide(9, answered(500, None), now());
        assert_eq!((last.state, last.error.as_deref()), (DeliveryState::Failed, Some("it answered 500")));
    }

    #[test]
    fn a_target_says_when_it_is_ready() {
        assert_eq!(waits(0, answered(503, Some("120"))), 120);
        assert_eq!(waits(0, answered(429, Some("Mon, 30 Nov 2026 23:10:00 GMT"))), 600);
        // Not sooner than the schedule, and not for ever.
        assert!(waits(1, answered(503, Some("1"))) >= 300);
        assert_eq!(waits(0, answered(503, Some("999999999"))), LONGEST.as_secs());
        assert!(waits(0, answered(503, Some("Mon, 30 Nov 2026 22:00:00 GMT"))) < 10);
        assert!(waits(0, answered(503, Some("soon"))) < 10);
    }

    #[test]
    fn answers_are_what_they_say() {
        for (status, state) in [
            (200, DeliveryState::Delivered),
            (204, DeliveryState::Delivered),
            (302, DeliveryState::Waiting),
            (404, DeliveryState::Waiting),
            (410, DeliveryState::Gone),
        ] {
            let came = decide(0, answered(status, None), now());
            assert_eq!(came.state, state, "{status}");
            assert_eq!(came.error.is_none(), state == DeliveryState::Delivered, "{status}");
        }
        let silent = Sent { error: Some("connection refused".to_owned()), ..Sent::default() };
        assert_eq!(decide(0, silent, now()).error.as_deref(), Some("connection refused"));
    }
}
