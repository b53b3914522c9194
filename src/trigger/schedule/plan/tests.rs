//! Instants where clocks change, by tables.

use std::time::Duration;

use super::*;
use crate::workflow::schedule::{Missed, Overlap};

fn schedule(when: When, zone: &str) -> Schedule {
    Schedule {
        when,
        timezone: TimeZone::get(zone).unwrap(),
        missed: Missed::Skip,
        catchup_window: None,
        overlap: Overlap::Skip,
        start_deadline: None,
        jitter: Duration::ZERO,
    }
}

fn cron(pattern: &str, zone: &str) -> Plan {
    Plan::new("test/1", &schedule(When::Cron(pattern.to_owned()), zone)).unwrap()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn after(plan: &Plan, from: Timestamp) -> impl Iterator<Item = Instant> {
    std::iter::successors(plan.next(from), |last| plan.next(last.at))
}

/// Instants and what is odd about them.
type Wanted = &'static [(&'static str, Option<Oddity>)];

#[test]
fn crons_where_clocks_change() {
    use Oddity::{First, Moved, Second};
    let cases: [(&str, &str, &str, Wanted); 9] = [
        // One fixed time in the gap: right after it, once.
        (
            "Europe/Berlin",
            "30 2 * * *",
            "2026-03-27T12:00Z",
            &[("2026-03-28T01:30Z", None), ("2026-03-29T01:00Z", Some(Moved)), ("2026-03-30T00:30Z", None)],
        ),
        // One fixed time that comes twice: the first.
        (
            "Europe/Berlin",
            "30 2 * * *",
            "2026-10-24T12:00Z",
            &[("2026-10-25T00:30Z", Some(First)), ("2026-10-26T01:30Z", None)],
        ),
        // Several times: the gap has none of them, the hour that comes twice has them twice.
        (
            "Europe/Berlin",
            "*/30 2 * * *",
            "2026-03-28T12:00Z",
            &[("2026-03-30T00:00Z", None), ("2026-03-30T00:30Z", None)],
        ),
        (
            "Europe/Berlin",
            "*/30 2 * * *",
            "2026-10-24T12:00Z",
            &[
                ("2026-10-25T00:00Z", Some(First)),
                ("2026-10-25T00:30Z", Some(First)),
                ("2026-10-25T01:00Z", Some(Second)),
                ("2026-10-25T01:30Z", Some(Second)),
                ("2026-10-26T01:00Z", None),
            ],
        ),
        (
            "America/New_York",
            "30 2 * * *",
            "2026-03-07T12:00Z",
            &[("2026-03-08T07:00Z", Some(Moved)), ("2026-03-09T06:30Z", None)],
        ),
        (
            "America/New_York",
            "30 1 * * *",
            "2026-10-31T12:00Z",
            &[("2026-11-01T05:30Z", Some(First)), ("2026-11-02T06:30Z", None)],
        ),
        // Half an hour of daylight saving: 02:00 to 02:29 is left out, 01:30 to 01:59 comes twice.
        (
            "Australia/Lord_Howe",
            "15 2 * * *",
            "2026-10-03T00:00Z",
            &[("2026-10-03T15:30Z", Some(Moved)), ("2026-10-04T15:15Z", None)],
        ),
        (
            "Australia/Lord_Howe",
            "45 1 * * *",
            "2026-04-04T00:00Z",
            &[("2026-04-04T14:45Z", Some(First)), ("2026-04-05T15:15Z", None)],
        ),
        (
            "Europe/Zurich",
            "0 6 * * MON",
            "2026-10-19T04:00Z",
            &[("2026-10-26T05:00Z", None), ("2026-11-02T05:00Z", None)],
        ),
    ];
    for (zone, pattern, from, wanted) in cases {
        let found: Vec<Instant> = after(&cron(pattern, zone), at(from)).take(wanted.len()).collect();
        let wanted: Vec<Instant> =
            wanted.iter().map(|(text, oddity)| Instant { at: at(text), oddity: *oddity }).collect();
        assert_eq!(found, wanted, "{pattern} in {zone} from {from}");
    }
}

#[test]
fn one_time_of_the_day_comes_once_on_every_day() {
    for zone in ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "UTC"] {
        for pattern in ["0 2 * * *", "30 2 * * *", "0 0 * * *", "45 1 * * *"] {
            let plan = cron(pattern, zone);
            let local = |at: Timestamp| plan.schedule().timezone.to_datetime(at).date();
            // Noon of the last day of the year before, in every zone.
            let found: Vec<Instant> = after(&plan, at("2025-12-31T12:00Z")).take(368).collect();
            assert!(found.windows(2).all(|pair| pair[0].at < pair[1].at), "{pattern} in {zone}");
            let this_year = found.iter().filter(|instant| local(instant.at).year() == 2026).count();
            assert_eq!(this_year, 365, "{pattern} in {zone}");
            let mut days: Vec<_> = found.iter().map(|instant| local(instant.at)).collect();
            days.dedup();
            assert_eq!(days.len(), found.len(), "{pattern} in {zone}");
        }
    }
}

#[test]
fn no_instant_comes_twice_or_before_the_one_before() {
    for zone in ["Europe/Berlin", "Australia/Lord_Howe"] {
        for pattern in ["*/15 * * * *", "7 */2 * * *", "0 1,2,3 * * *", "*/20 1-3 * 3,10 SUN"] {
            let plan = cron(pattern, zone);
            let found: Vec<Instant> = after(&plan, at("2026-10-01T00:00Z")).take(3000).collect();
            assert!(found.windows(2).all(|pair| pair[0].at < pair[1].at), "{pattern} in {zone}");
        }
    }
}

#[test]
fn intervals_count_real_time_from_1970() {
    let every =
        |text: &str| schedule(When::Every(crate::workflow::units::duration(text).unwrap()), "Europe/Berlin");
    let plan = Plan::new("test/1", &every("6h")).unwrap();
    let found: Vec<Timestamp> =
        after(&plan, at("2026-03-28T18:00Z")).take(3).map(|instant| instant.at).collect();
    assert_eq!(found, [at("2026-03-29T00:00Z"), at("2026-03-29T06:00Z"), at("2026-03-29T12:00Z")]);
}

#[test]
fn local_times_follow_the_same_rules_and_end() {
    let times = ["2026-10-25T02:30", "2026-03-29T02:30", "2026-03-29T03:00", "2026-07-01T12:00"];
    let times = times.iter().map(|text| text.parse().unwrap()).collect();
    let plan = Plan::new("test/1", &schedule(When::At(times), "Europe/Berlin")).unwrap();
    let found: Vec<Instant> = after(&plan, at("2026-01-01T00:00Z")).collect();
    assert_eq!(
        found,
        [
            Instant { at: at("2026-03-29T01:00Z"), oddity: Some(Oddity::Moved) },
            Instant { at: at("2026-07-01T10:00Z"), oddity: None },
            Instant { at: at("2026-10-25T00:30Z"), oddity: Some(Oddity::First) },
        ]
    );
}

#[test]
fn a_year_of_seconds_is_passed_over_quickly() {
    let seconds = schedule(When::Every(Duration::from_secs(1)), "UTC");
    let plan = Plan::new("test/1", &seconds).unwrap();
    let passed = plan.passed(at("2025-06-01T00:00Z"), at("2026-06-01T00:00Z"));
    assert_eq!(passed.instants.len(), Plan::MOST);
    assert_eq!(passed.instants.back(), Some(&at("2026-06-01T00:00Z")));
    assert!(passed.older >= 9_000, "{}", passed.older);
    assert_eq!(passed.next, Some(at("2026-06-01T00:00:01Z")));
}
