//! Cron patterns on local time.
//!
//! The rules where clocks change are those of Vixie's cron. A job at one fixed time of the day runs once: a time that
//! is left out is made up for right after the gap, a time that comes twice counts the first time. Every other job goes
//! by the clock on the wall: what is left out does not run, and what comes twice runs twice.

use std::cmp::Ordering;
use std::str::FromStr;

use croner::errors::CronError;
use croner::{CivilDate, CivilDateTime, CivilTime, Cron, CronDateTime, Resolution, Weekday};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp};

/// An instant where the clock on the wall counts.
#[derive(Debug, Clone)]
struct Local {
    at: Timestamp,
    zone: TimeZone,
}

/// The fields of the longest pattern.
const FIELDS: [&str; 7] =
    ["second", "minute", "hour", "day of the month", "month", "day of the week", "year"];

/// Reads a pattern; the error says what is wrong with it, also when it can never fit.
pub fn check(pattern: &str) -> Result<(), String> {
    parse(pattern).map(drop)
}

/// Reads a pattern that fits some instant.
pub(super) fn parse(pattern: &str) -> Result<Cron, String> {
    let fields: Vec<&str> = pattern.split_whitespace().collect();
    if !pattern.trim_start().starts_with('@') && !(5..=FIELDS.len()).contains(&fields.len()) {
        return Err(format!(
            "it has {} field{}, and needs 5: minute, hour, day of the month, month, day of the week",
            fields.len(),
            if fields.len() == 1 { "" } else { "s" }
        ));
    }
    let cron = Cron::from_str(pattern).map_err(|error| blame(&fields).unwrap_or_else(|| reason(&error)))?;
    // From a time that stands still: whether a script is right does not depend on the day it is looked at.
    match next(&cron, &TimeZone::UTC, Timestamp::UNIX_EPOCH) {
        Some(_) => Ok(cron),
        None => Err("no day of any year fits: the months it names do not have that day".into()),
    }
}

/// The first instant after `after` that fits.
pub(super) fn next(cron: &Cron, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    let after = Local { at: after, zone: zone.clone() };
    // The only errors are an end of the calendar and a search without end: both mean that nothing comes.
    cron.find_next_occurrence(&after, false).ok().map(|found| found.at).filter(|found| *found > after.at)
}

/// Whether the clock on the wall shows a time that fits. It does not where a time that was left out is made up for.
pub(super) fn fits(cron: &Cron, zone: &TimeZone, at: Timestamp) -> bool {
    cron.is_time_matching(&Local { at, zone: zone.clone() }).unwrap_or_default()
}

/// Which field is wrong: the first that is refused even when the others say nothing.
fn blame(fields: &[&str]) -> Option<String> {
    // With five fields, seconds and years are left out.
    let first = usize::from(fields.len() == 5);
    fields.iter().enumerate().find_map(|(index, field)| {
        let mut alone = vec!["*"; fields.len()];
        alone[index] = field;
        let error = Cron::from_str(&alone.join(" ")).err()?;
        Some(format!("the {} `{field}` is none ({})", FIELDS.get(first + index)?, reason(&error)))
    })
}

/// The library's words without the names of its types.
fn reason(error: &CronError) -> String {
    match error {
        CronError::EmptyPattern => "it is empty".into(),
        CronError::InvalidPattern(why)
        | CronError::IllegalCharacters(why)
        | CronError::ComponentError(why) => why.trim_end_matches('.').to_owned(),
        other => other.to_string(),
    }
}

impl CronDateTime for Local {
    fn to_civil(&self) -> CivilDateTime {
        let local = self.zone.to_datetime(self.at);
        let part = |value: i8| u32::try_from(value).unwrap_or_default();
        CivilDateTime::new(
            CivilDate::from_parts_unchecked(local.year().into(), part(local.month()), part(local.day())),
            CivilTime::from_parts_unchecked(part(local.hour()), part(local.minute()), part(local.second())),
        )
    }

    fn civil_weekday(&self) -> Weekday {
        let days = self.zone.to_datetime(self.at).weekday().to_sunday_zero_offset();
        Weekday::from_days_from_sunday(u32::try_from(days).unwrap_or_default())
    }

    fn resolve_civil(&self, civil: CivilDateTime) -> Result<Resolution<Self>, CronError> {
        let found = self.zone.to_ambiguous_timestamp(datetime(civil).ok_or(CronError::InvalidDate)?);
        let here = |found: Result<Timestamp, jiff::Error>| {
            let at = found.map_err(|_| CronError::InvalidTime)?;
            Ok::<_, CronError>(Self { at, zone: self.zone.clone() })
        };
        Ok(match found.offset() {
            AmbiguousOffset::Unambiguous { .. } => Resolution::Single(here(found.unambiguous())?),
            AmbiguousOffset::Fold { .. } => {
                Resolution::Ambiguous(here(found.earlier())?, here(found.later())?)
            }
            AmbiguousOffset::Gap { .. } => Resolution::Gap,
        })
    }

    fn checked_add_seconds(&self, seconds: i64) -> Option<Self> {
        let at = self.at.checked_add(SignedDuration::from_secs(seconds)).ok()?;
        Some(Self { at, zone: self.zone.clone() })
    }

    fn cmp_instant(&self, other: &Self) -> Ordering {
        self.at.cmp(&other.at)
    }
}

fn datetime(civil: CivilDateTime) -> Option<DateTime> {
    let part = |value: u32| i8::try_from(value).ok();
    DateTime::new(
        civil.year().try_into().ok()?,
        part(civil.month())?,
        part(civil.day())?,
        part(civil.hour())?,
        part(civil.minute())?,
        part(civil.second())?,
        0,
    )
    .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_mean_nothing_are_refused_with_the_reason() {
        for (pattern, reason) in [
            ("0 0 30 2 *", "no day of any year fits"),
            ("0 0 31 4,6,9,11 *", "no day of any year fits"),
            ("* * *", "it has 3 fields, and needs 5"),
            ("", "it has 0 fields"),
            ("61 * * * *", "the minute `61` is none"),
            ("0 6 * * FUNDAY", "the day of the week `FUNDAY` is none"),
            ("@fortnightly", ""),
        ] {
            let why = check(pattern).expect_err(pattern);
            assert!(why.contains(reason), "{pattern}: {why}");
        }
    }

    #[test]
    fn patterns_that_come_rarely_are_taken() {
        for pattern in
            ["0 0 29 2 *", "0 0 29 2 FRI#1", "@daily", "*/5 * * * * *", "0 6 L * *", "0 0 1 1 * * 2020"]
        {
            check(pattern).unwrap_or_else(|why| panic!("{pattern}: {why}"));
        }
    }
}
