//! How long a server asks us to wait.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

/// Reads `retry-after-ms`, then `Retry-After` as seconds or as a date. A date is taken against the server's own
/// clock where it tells it, and against `now` otherwise.
pub(super) fn asked(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(millis) = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    let after = text(RETRY_AFTER.as_str())?;
    if let Ok(seconds) = after.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let now = text(DATE.as_str()).and_then(date).unwrap_or(now);
    let wait = date(after)?.duration_since(now);
    Some(wait.try_into().unwrap_or(Duration::ZERO))
}

fn date(text: &str) -> Option<Timestamp> {
    rfc2822::parse(text).ok().map(|zoned| zoned.timestamp())
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
            headers.insert(name, HeaderValue::from_str(value).expect("a value"));
        }
        asked(&headers, "2026-01-01T00:00:00Z".parse().expect("a time"))
    }

    #[test]
    fn every_way_of_asking_is_understood() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(read(&[("retry-after", "7")]), seconds(7));
        assert_eq!(read(&[("retry-after", "0.5")]), Some(Duration::from_millis(500)));
        assert_eq!(
            read(&[("retry-after-ms", "1500"), ("retry-after", "2")]),
            Some(Duration::from_millis(1500))
        );
        assert_eq!(
            read(&[("retry-after", "Thu, 01 Jan 2026 00:00:30 GMT")]),
            seconds(30)
        );
        assert_eq!(
            read(&[
                ("retry-after", "Thu, 01 Jan 2026 00:00:30 GMT"),
                ("date", "Thu, 01 Jan 2026 00:00:10 GMT")
            ]),
            seconds(20)
        );
    }

    #[test]
    fn nonsense_asks_for_nothing_and_the_past_for_no_wait() {
        for wrong in ["", "soon", "-3", "NaN", "inf", "1e300"] {
            assert_eq!(read(&[("retry-after", wrong)]), None, "{wrong}");
        }
        assert_eq!(read(&[]), None);
        assert_eq!(
            read(&[("retry-after", "Wed, 31 Dec 2025 00:00:00 GMT")]),
            Some(Duration::ZERO)
        );
    }
}
