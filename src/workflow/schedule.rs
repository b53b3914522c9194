//! What starts a workflow by the clock.

use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// Starts a run at certain instants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// Which instants.
    pub when: When,
    /// Where the times of [`When::Cron`] and [`When::At`] are local, and dates are told.
    pub timezone: TimeZone,
    /// What becomes of instants at which nobody watched.
    pub missed: Missed,
    /// Missed instants older than this make no run; `None` is no bound.
    pub catchup_window: Option<Duration>,
    /// What becomes of an instant while a run of this schedule has not ended.
    pub overlap: Overlap,
    /// A run that has not begun this long after its instant does not begin.
    pub start_deadline: Option<Duration>,
    /// Runs start up to this much later, each instant always by the same part of it.
    pub jitter: Duration,
}

/// Which instants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum When {
    /// Local times that fit a cron pattern, which can fit some.
    Cron(String),
    /// Every so much time since 1970 began in UTC: clocks that change do not matter. Never zero.
    Every(Duration),
    /// These local times.
    At(Vec<DateTime>),
}

/// What becomes of instants at which nobody watched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Missed {
    /// They are counted.
    #[default]
    Skip,
    /// One run stands for all of them.
    Latest,
    /// Each has its run.
    All,
}

/// What becomes of an instant while a run of the same schedule has not ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Overlap {
    /// It makes no run.
    #[default]
    Skip,
    /// Its run waits for those before it.
    Queue,
    /// The newest such instant makes a run when the one before has ended.
    Latest,
    /// Its run starts beside the other.
    Allow,
}

/// How far a schedule has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Everything up to here is decided.
    pub decided: Timestamp,
    /// The instant that waits for a run to end, see [`Overlap::Latest`].
    pub held: Option<Timestamp>,
    /// Instants that made no run since the last one that did.
    pub missed: u64,
}

/// What a run knows of the schedule that started it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fired {
    /// The instant it is for; it may have started later.
    pub at: Timestamp,
    /// The instant of the run before it.
    pub previous: Option<Timestamp>,
    /// Instants in between that made no run.
    pub missed: u64,
    /// Where dates are told.
    pub timezone: TimeZone,
    /// After this it does not begin.
    pub start_by: Option<Timestamp>,
}

impl Missed {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Skip, Self::Latest, Self::All];

    /// As scripts write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Latest => "latest",
            Self::All => "all",
        }
    }
}

impl Overlap {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Skip, Self::Queue, Self::Latest, Self::Allow];

    /// As scripts write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Queue => "queue",
            Self::Latest => "latest",
            Self::Allow => "allow",
        }
    }
}

impl Schedule {
    /// Its instants in one line: `cron 0 6 * * MON, Europe/Zurich`. What is equal here has the same instants.
    pub fn describe(&self) -> String {
        match &self.when {
            When::Cron(pattern) => format!("cron {pattern}, {}", self.zone()),
            When::Every(period) => format!("every {}", length(*period)),
            When::At(times) => {
                let times: Vec<String> = times.iter().map(ToString::to_string).collect();
                format!("at {}, {}", times.join(" "), self.zone())
            }
        }
    }

    /// After this, the run of the instant `at` does not begin.
    pub fn start_by(&self, at: Timestamp) -> Option<Timestamp> {
        self.start_deadline.map(|deadline| later(at, deadline))
    }

    /// The name of its time zone.
    pub fn zone(&self) -> &str {
        self.timezone.iana_name().unwrap_or("UTC")
    }

    /// The name the store knows it by: edits keep it. `place` counts the schedules of the workflow from 1.
    pub fn id(workflow: &str, place: usize) -> String {
        format!("{workflow}/{place}")
    }
}

/// `at` and `duration`; where the calendar ends, its end.
pub fn later(at: Timestamp, duration: Duration) -> Timestamp {
    let duration = SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
    at.checked_add(duration).unwrap_or(Timestamp::MAX)
}

/// `at` less `duration`; where the calendar begins, its beginning.
pub fn earlier(at: Timestamp, duration: Duration) -> Timestamp {
    let duration = SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
    at.checked_sub(duration).unwrap_or(Timestamp::MIN)
}

/// A duration to the millisecond, as scripts write it: `1d12h`.
fn length(duration: Duration) -> String {
    const UNITS: [(&str, u128); 5] =
        [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
    let mut rest = duration.as_millis();
    let mut text = String::new();
    for (unit, millis) in UNITS {
        if rest >= millis {
            text += &(rest / millis).to_string();
            text += unit;
            rest %= millis;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_written_as_they_are_read() {
        for text in ["1d12h", "90s", "1h30m", "250ms"] {
            let read = crate::workflow::units::duration(text).unwrap();
            assert_eq!(crate::workflow::units::duration(&length(read)), Ok(read), "{text}");
        }
        assert_eq!(length(Duration::from_secs(90)), "1m30s");
    }
}
