//! Sizes and durations as people write them: `20MB`, `10m`.

use std::time::Duration;

/// Reads `90s`, `10m`, `1h30m`, `250ms`, `2d`; the error says what is accepted.
pub fn duration(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, u64); 5] =
        [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
    let wrong = || format!("`{text}` is not a duration; write it like `90s`, `10m` or `1h30m`");
    let mut rest = text.trim();
    let mut millis: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number: u64 = rest[..digits].parse().map_err(|_| wrong())?;
        rest = &rest[digits..];
        let letters = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
        let (_, factor) = UNITS.into_iter().find(|(unit, _)| *unit == &rest[..letters]).ok_or_else(wrong)?;
        rest = &rest[letters..];
        millis = number.checked_mul(factor).and_then(|part| millis.checked_add(part)).ok_or_else(wrong)?;
    }
    if text.trim().is_empty() { Err(wrong()) } else { Ok(Duration::from_millis(millis)) }
}

/// Reads `512`, `20MB`, `64KiB`, `1.5GB` into bytes. `KB` is 1,000 bytes, `KiB` is 1,024.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked against the range first"
)]
#[expect(clippy::cast_precision_loss, reason = "a size of 2^53 bytes is beyond every use")]
pub fn size(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 10] = [
        ("", 1),
        ("b", 1),
        ("kb", 1_000),
        ("mb", 1_000_000),
        ("gb", 1_000_000_000),
        ("kib", 1 << 10),
        ("mib", 1 << 20),
        ("gib", 1 << 30),
        ("tb", 1_000_000_000_000),
        ("tib", 1 << 40),
    ];
    let wrong = || format!("`{text}` is not a size; write it like `20MB`, `64KiB` or `1.5GB`");
    let text_lower = text.trim().to_ascii_lowercase();
    let digits =
        text_lower.len() - text_lower.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
    let number: f64 = text_lower[..digits].parse().map_err(|_| wrong())?;
    let unit = text_lower[digits..].trim();
    let (_, factor) = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
    let bytes = number * factor as f64;
    if bytes.is_finite() && bytes < (1_u64 << 53) as f64 { Ok(bytes as u64) } else { Err(wrong()) }
}

/// Writes a duration for people: `850 ms`, `12.3 s`, `4 m 05 s`, `2 h 10 m`.
pub fn show_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{} ms", duration.as_millis()),
        1..60 => format!("{:.1} s", duration.as_secs_f64()),
        60..3600 => format!("{} m {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Writes bytes for people: `512 B`, `20.0 MB`.
#[expect(clippy::cast_precision_loss, reason = "for show")]
pub fn show_size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        for wrong in ["", "10", "m", "10 minutes", "-5m", "99999999999999999999s"] {
            assert!(duration(wrong).is_err(), "{wrong:?} was accepted");
        }
    }

    #[test]
    fn sizes_are_read_as_people_write_them() {
        assert_eq!(size("20MB"), Ok(20_000_000));
        assert_eq!(size("1.5 KiB"), Ok(1536));
        assert_eq!(size("7"), Ok(7));
        assert_eq!(size("999TiB"), Ok(999 << 40));
        for wrong in ["", "MB", "20 parsecs", "-1MB", "1e400GB"] {
            assert!(size(wrong).is_err(), "{wrong:?} was accepted");
        }
    }
}
