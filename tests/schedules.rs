//! Schedules: every instant makes one run, whatever happened to the process and the clock in between.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod daemon;
mod skips;
mod store;
mod story;
mod watching;

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use tidemill::event::id::{Digest, RunId};
use tidemill::event::trigger::Trigger;
use tidemill::store::NewRun;
use tidemill::workflow::schedule::{Missed, Overlap, Schedule, When};

/// On every full hour in Zurich.
fn hourly() -> Schedule {
    Schedule {
        when: When::Cron("0 * * * *".to_owned()),
        timezone: TimeZone::get("Europe/Zurich").unwrap(),
        missed: Missed::Skip,
        catchup_window: None,
        overlap: Overlap::Skip,
        start_deadline: None,
        jitter: Duration::ZERO,
    }
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn new_run(id: &str) -> NewRun {
    NewRun::new(
        RunId::parse(id).unwrap(),
        "report",
        Trigger::Schedule,
        Digest::of("script"),
        "analyst",
        at("2026-11-30T23:00:00Z"),
    )
}
