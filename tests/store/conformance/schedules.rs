//! Schedules: an instant and its run.

use tidemill::event::id::{Digest, RunId};
use tidemill::event::trigger::Trigger;
use tidemill::store::{Fire, Made, NewRun};
use tidemill::workflow::schedule::{Missed, Overlap, Schedule, When};

use super::Fresh;

pub(super) async fn an_instant_makes_one_run_whatever_is_asked(fresh: &Fresh) {
    let declared = Schedule {
        when: When::Cron("0 * * * *".to_owned()),
        timezone: jiff::tz::TimeZone::UTC,
        missed: Missed::Latest,
        catchup_window: None,
        overlap: Overlap::Skip,
        start_deadline: None,
        jitter: std::time::Duration::ZERO,
    };
    let at = "2026-12-01T06:00:00Z".parse().unwrap();
    let fire = |run: &str| Fire {
        schedule: "report/1",
        declared: &declared,
        at,
        missed: 0,
        start_by: None,
        run: NewRun::new(
            RunId::parse(run).unwrap(),
            "report",
            Trigger::Schedule,
            Digest::of("script"),
            "analyst",
            at,
        ),
    };
    fresh.store.know_schedules(&[("report/1", "report", &declared)], at).await.unwrap();
    assert_eq!(fresh.store.fire(&fire("run-1")).await.unwrap(), Made::This);
    assert_eq!(fresh.store.fire(&fire("run-2")).await.unwrap(), Made::Before);
    assert_eq!(fresh.waiting(10).await, ["run-1"]);
    assert!(fresh.store.is_busy("report/1").await.unwrap());
    assert_eq!(
        fresh.store.made("report/1", at - jiff::SignedDuration::from_secs(1), at).await.unwrap().len(),
        1
    );
}
