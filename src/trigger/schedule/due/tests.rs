//! What becomes of instants: policies, late clocks, clocks that jump.

use jiff::tz::TimeZone;

use super::*;
use crate::workflow::schedule::When;

/// On every full hour.
fn hourly() -> Schedule {
    Schedule {
        when: When::Cron("0 * * * *".into()),
        timezone: TimeZone::UTC,
        missed: Missed::Skip,
        catchup_window: None,
        overlap: Overlap::Skip,
        start_deadline: None,
        jitter: Duration::ZERO,
    }
}

fn at(text: &str) -> Timestamp {
    format!("2026-12-01T{text}Z").parse().unwrap()
}

fn decided(text: &str) -> Standing {
    Standing { decided: at(text), held: None, missed: 0 }
}

fn ask(schedule: &Schedule, standing: Standing, now: &str, busy: Busy) -> Due {
    due(&Plan::new("test/1", schedule).unwrap(), standing, at(now), busy, &BTreeSet::new())
}

/// The firings as `10:00 +2`: the instant, and how many it missed.
fn shown(due: &Due) -> Vec<String> {
    let show = |firing: &Firing| format!("{} +{}", firing.at.strftime("%H:%M"), firing.missed);
    due.firings.iter().map(show).collect()
}

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn an_instant_fires_when_it_has_come_and_not_again() {
    let before = ask(&hourly(), decided("09:00:00"), "09:59:59", Busy::No);
    assert_eq!((shown(&before), before.next), (Vec::new(), Some(at("10:00:00"))));
    let then = ask(&hourly(), before.standing, "10:00:00", Busy::No);
    assert_eq!((shown(&then), then.next), (vec!["10:00 +0".to_owned()], Some(at("11:00:00"))));
    assert!(ask(&hourly(), then.standing, "10:00:30", Busy::No).firings.is_empty());
}

#[test]
fn what_was_missed_goes_by_policy_and_window() {
    let two_hours = Some(2 * HOUR);
    let cases: [(Missed, Option<Duration>, &str, &[&str]); 9] = [
        // Up to a minute late is on time.
        (Missed::Skip, None, "11:01:00", &["11:00 +2"]),
        (Missed::Skip, None, "11:01:01", &[]),
        (Missed::Latest, None, "11:30:00", &["11:00 +2"]),
        // The one that is on time stands for those before it.
        (Missed::Latest, None, "12:00:00", &["12:00 +3"]),
        (Missed::Latest, Some(HOUR / 2), "11:30:00", &["11:00 +2"]),
        (Missed::Latest, Some(HOUR / 2), "11:30:01", &[]),
        (Missed::All, None, "11:30:00", &["09:00 +0", "10:00 +0", "11:00 +0"]),
        (Missed::All, two_hours, "11:30:00", &["10:00 +1", "11:00 +0"]),
        (Missed::All, two_hours, "20:30:00", &["19:00 +10", "20:00 +0"]),
    ];
    for (missed, catchup_window, now, wanted) in cases {
        let schedule = Schedule { missed, catchup_window, overlap: Overlap::Allow, ..hourly() };
        let due = ask(&schedule, decided("08:30:00"), now, Busy::No);
        assert_eq!(shown(&due), wanted, "{missed:?} {catchup_window:?} at {now}");
    }
}

#[test]
fn the_next_run_knows_of_all_that_made_none() {
    let skipped = ask(&hourly(), decided("08:30:00"), "11:30:00", Busy::No);
    assert_eq!((shown(&skipped), skipped.standing.missed), (Vec::new(), 3));
    let busy = ask(&hourly(), skipped.standing, "12:00:00", Busy::Yes);
    assert_eq!((shown(&busy), busy.standing.missed), (Vec::new(), 4));
    assert_eq!(shown(&ask(&hourly(), busy.standing, "13:00:00", Busy::No)), ["13:00 +4"]);
}

#[test]
fn a_thousand_missed_are_one_run_of_the_latest() {
    let minutes = Schedule { when: When::Every(Duration::from_secs(60)), missed: Missed::Latest, ..hourly() };
    let due = ask(&minutes, decided("00:00:00"), "23:59:30", Busy::No);
    assert_eq!(shown(&due), ["23:59 +1438"]);
    let long_ago = "2025-12-01T00:00:00Z".parse().unwrap();
    let due = ask(&minutes, Standing { decided: long_ago, ..decided("00:00:00") }, "23:59:30", Busy::No);
    assert!(due.firings.len() == 1 && due.firings[0].missed > 10_000, "{due:?}");
}

#[test]
fn while_a_run_works_the_next_goes_by_overlap() {
    let ask_at = |overlap, standing, now, busy| ask(&Schedule { overlap, ..hourly() }, standing, now, busy);
    for (overlap, wanted) in [
        (Overlap::Skip, &[][..]),
        (Overlap::Queue, &["10:00 +0"]),
        (Overlap::Allow, &["10:00 +0"]),
        (Overlap::Latest, &[]),
    ] {
        assert_eq!(shown(&ask_at(overlap, decided("09:00:00"), "10:00:00", Busy::Yes)), wanted);
    }
    // Of those that wait, the newest is left, and fires when nothing works.
    let first = ask_at(Overlap::Latest, decided("09:00:00"), "10:00:00", Busy::Yes);
    let second = ask_at(Overlap::Latest, first.standing, "11:00:00", Busy::Yes);
    assert_eq!(second.standing.held, Some(at("11:00:00")));
    let free = ask_at(Overlap::Latest, second.standing, "11:40:00", Busy::No);
    assert_eq!((shown(&free), free.standing.held), (vec!["11:00 +1".to_owned()], None));
}

#[test]
fn several_at_once_overlap_each_other() {
    let schedule = Schedule { missed: Missed::All, ..hourly() };
    let due = ask(&schedule, decided("08:30:00"), "11:30:00", Busy::No);
    assert_eq!((shown(&due), due.standing.missed), (vec!["09:00 +0".to_owned()], 2));
}

#[test]
fn after_its_deadline_nothing_starts() {
    let schedule = Schedule { missed: Missed::All, start_deadline: Some(HOUR), ..hourly() };
    let due = ask(&schedule, decided("08:30:00"), "11:30:00", Busy::No);
    assert_eq!(shown(&due), ["11:00 +2"]);
    let held = Standing { held: Some(at("10:00:00")), ..decided("11:00:00") };
    let due = ask(&Schedule { overlap: Overlap::Latest, ..schedule }, held, "11:30:00", Busy::No);
    assert_eq!((shown(&due), due.standing.missed, due.standing.held), (Vec::new(), 1, None));
}

#[test]
fn a_clock_that_jumps_forward_misses_and_one_set_back_counts_from_there() {
    let at_three = ask(&hourly(), decided("02:59:00"), "03:00:00", Busy::No);
    assert_eq!(shown(&at_three), ["03:00 +0"]);
    // Forward by half a day: the instants in between were missed.
    let ahead = ask(&hourly(), at_three.standing, "15:30:00", Busy::No);
    assert_eq!((shown(&ahead), ahead.standing.missed), (Vec::new(), 12));
    // Back again: nothing is due, and 4 o'clock fires when it really comes.
    let back = ask(&hourly(), ahead.standing, "03:10:00", Busy::No);
    assert_eq!((shown(&back), back.standing.decided), (Vec::new(), at("03:10:00")));
    assert_eq!(back.next, Some(at("04:00:00")));
    assert_eq!(shown(&ask(&hourly(), back.standing, "04:00:00", Busy::No)).len(), 1);
}

#[test]
fn what_makes_no_run_is_told_with_the_reason() {
    let told = |schedule: &Schedule, standing, now, busy| {
        let skipped = ask(schedule, standing, now, busy).skipped;
        assert!(skipped.len() <= 1);
        skipped.first().map(|skipped| (skipped.count, skipped.last, skipped.why))
    };
    let before = decided("08:30:00");
    assert_eq!(told(&hourly(), before, "11:30:00", Busy::No), Some((3, at("11:00:00"), Why::Missed)));
    assert_eq!(told(&hourly(), decided("09:30:00"), "10:00:00", Busy::No), None);
    let busy = Some((1, at("10:00:00"), Why::Busy));
    assert_eq!(told(&hourly(), decided("09:30:00"), "10:00:00", Busy::Yes), busy);
    let deadline = Schedule { start_deadline: Some(HOUR / 4), missed: Missed::All, ..hourly() };
    assert_eq!(told(&deadline, before, "11:30:00", Busy::No), Some((3, at("11:00:00"), Why::TooLate)));
    let latest = Schedule { overlap: Overlap::Latest, ..hourly() };
    let held = Standing { held: Some(at("09:00:00")), ..decided("09:00:00") };
    assert_eq!(told(&latest, held, "10:00:00", Busy::Yes), Some((1, at("09:00:00"), Why::Replaced)));
}

#[test]
fn instants_in_a_row_with_one_reason_are_one() {
    // Two were missed, the third is on time and comes while a run works.
    let skipped = ask(&hourly(), decided("07:30:00"), "10:00:00", Busy::Yes).skipped;
    let told: Vec<_> = skipped.iter().map(|skip| (skip.first, skip.last, skip.count, skip.why)).collect();
    let missed = (at("08:00:00"), at("09:00:00"), 2, Why::Missed);
    assert_eq!(told, [missed, (at("10:00:00"), at("10:00:00"), 1, Why::Busy)]);
}

#[test]
fn an_instant_that_made_its_run_is_no_longer_asked_about() {
    let plan = Plan::new("test/1", &hourly()).unwrap();
    // Set back by a few seconds right after it fired: its run works.
    let made = BTreeSet::from([at("10:00:00")]);
    let again = due(&plan, decided("09:59:58"), at("10:00:01"), Busy::Yes, &made);
    assert_eq!((shown(&again), again.skipped, again.standing), (Vec::new(), Vec::new(), decided("10:00:00")));
}

#[test]
fn jitter_puts_off_the_start_and_not_the_instant() {
    let schedule = Schedule { jitter: HOUR / 2, ..hourly() };
    let plan = Plan::new("test/1", &schedule).unwrap();
    let none = BTreeSet::new();
    let start = plan.start(at("10:00:00"));
    assert!(start > at("10:00:00") && start < at("10:30:00"), "{start}");
    let before = due(&plan, decided("09:59:00"), start - Duration::from_millis(1), Busy::No, &none);
    assert_eq!((before.firings.len(), before.next), (0, Some(start)));
    assert_eq!(shown(&due(&plan, before.standing, start, Busy::No, &none)), ["10:00 +0"]);
}
