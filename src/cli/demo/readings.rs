//! A year of hourly readings of an office building, the same for ever, with six abnormal events in it.
//!
//! Only additions, multiplications and divisions are used, which every machine rounds alike; the generator of
//! chance is our own for the same reason.

use std::fmt::Write as _;

use jiff::civil::{DateTime, Weekday, date};

/// The first line.
pub const HEADER: &str = "timestamp,energy_kwh,outdoor_temp_c";

/// Hours of the year 2025.
pub const HOURS: usize = 8_760;

/// What is wrong in an abnormal event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Heating and ventilation were not turned down after work.
    LeftOn,
    /// A load far above everything else, for an hour or two.
    Spike,
    /// A weekend that ran like working days.
    BusyWeekend,
    /// The meter recorded next to nothing.
    Outage,
    /// Cooling that needs more every day, as when refrigerant leaks.
    Drift,
    /// A very high load on a public holiday.
    HolidayLoad,
}

/// An abnormal event that the readings hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abnormal {
    /// Its first hour, counted from the start of the year.
    pub start: usize,
    /// How many hours it lasts.
    pub hours: usize,
    /// What is wrong.
    pub kind: Kind,
}

impl Abnormal {
    /// The time stamp of its first hour, as the readings write it.
    pub fn first(&self) -> String {
        stamp(self.start)
    }

    /// The time stamp of its last hour.
    pub fn last(&self) -> String {
        stamp(self.start + self.hours - 1)
    }
}

impl Kind {
    /// What is wrong, for people.
    pub fn describe(self) -> &'static str {
        match self {
            Self::LeftOn => "heating left on overnight",
            Self::Spike => "a sudden spike",
            Self::BusyWeekend => "a weekend that ran like working days",
            Self::Outage => "a meter outage",
            Self::Drift => "a week of rising cooling load",
            Self::HolidayLoad => "an extreme load on a holiday",
        }
    }
}

/// The six events, in the order of the year.
pub const ABNORMAL: [Abnormal; 6] = [
    // Tuesday 11 February, 20:00
    Abnormal { start: 41 * 24 + 20, hours: 10, kind: Kind::LeftOn },
    // Wednesday 19 March, 14:00
    Abnormal { start: 77 * 24 + 14, hours: 2, kind: Kind::Spike },
    // Saturday 17 May, 07:00
    Abnormal { start: 136 * 24 + 7, hours: 36, kind: Kind::BusyWeekend },
    // Tuesday 24 June, 09:00
    Abnormal { start: 174 * 24 + 9, hours: 7, kind: Kind::Outage },
    // Monday 4 August, 00:00
    Abnormal { start: 215 * 24, hours: 168, kind: Kind::Drift },
    // Thursday 25 December, 06:00
    Abnormal { start: 358 * 24 + 6, hours: 16, kind: Kind::HolidayLoad },
];

/// Public holidays, as days from the start of the year: the building is closed.
const HOLIDAYS: [usize; 6] = [0, 107, 110, 120, 358, 359];

/// The readings as CSV, line ends included.
pub fn csv() -> String {
    let mut chance = Chance(0x7115_de31);
    let mut weather = 0.0;
    let mut text = String::with_capacity(HOURS * 32);
    text.push_str(HEADER);
    text.push('\n');
    for hour in 0..HOURS {
        weather = 0.985 * weather + 0.45 * chance.normal();
        let temperature = climate(hour) + weather;
        let ordinary = ordinary(hour, temperature) * (1.0 + 0.03 * chance.normal()) + 0.6 * chance.normal();
        let energy = disturbed(hour, ordinary).max(0.0);
        // A write to a String cannot fail.
        let _ = writeln!(text, "{},{energy:.2},{temperature:.1}", stamp(hour));
    }
    text
}

/// `2025-01-01 00:00:00` and so on: local standard time, no change of clocks.
fn stamp(hour: usize) -> String {
    time(hour).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// The local time of an hour counted from the start of the year.
pub fn time(hour: usize) -> DateTime {
    let hours = i64::try_from(hour).unwrap_or_default();
    date(2025, 1, 1).at(0, 0, 0, 0).saturating_add(jiff::SignedDuration::from_hours(hours))
}

/// The usual outdoor temperature: coldest in mid January and before dawn.
fn climate(hour: usize) -> f64 {
    let day = share(hour, 24);
    let year = share(hour, HOURS);
    10.5 - 9.5 * wave(year + 0.25 - 15.0 / 365.0) - 3.8 * wave(day + 0.25 - 4.0 / 24.0)
}

/// What the building uses when nothing is wrong.
fn ordinary(hour: usize, temperature: f64) -> f64 {
    /// Share of full occupation by hour of a working day.
    const WORK: [f64; 24] = [
        0.0, 0.0, 0.0, 0.0, 0.0, 0.05, 0.25, 0.6, 0.9, 1.0, 1.0, 0.97, 0.85, 0.95, 1.0, 0.98, 0.92, 0.75,
        0.45, 0.25, 0.1, 0.05, 0.0, 0.0,
    ];
    let occupied = match day(hour) {
        Day::Work => WORK[hour % 24],
        Day::Saturday if (9..13).contains(&(hour % 24)) => 0.15,
        Day::Saturday | Day::Closed => 0.0,
    };
    let heating = (15.0 - temperature).max(0.0) * (0.5 + 1.1 * occupied);
    let cooling = (temperature - 21.0).max(0.0) * (0.3 + 1.9 * occupied);
    23.0 + 52.0 * occupied + heating + cooling
}

/// What the meter shows, with the abnormal event of this hour if there is one.
fn disturbed(hour: usize, ordinary: f64) -> f64 {
    let Some(event) = ABNORMAL.iter().find(|event| (event.start..event.start + event.hours).contains(&hour))
    else {
        return ordinary;
    };
    let passed = share(hour - event.start, event.hours);
    match event.kind {
        Kind::LeftOn => ordinary + 41.0 - 6.0 * passed,
        Kind::Spike => ordinary * (2.5 - 0.8 * passed),
        Kind::BusyWeekend if (7..20).contains(&(hour % 24)) => ordinary + 54.0,
        Kind::BusyWeekend => ordinary + 19.0,
        Kind::Outage => 0.004 * ordinary,
        Kind::Drift => ordinary + 14.0 + 30.0 * passed,
        Kind::HolidayLoad => ordinary + 132.0,
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Day {
    Work,
    Saturday,
    Closed,
}

fn day(hour: usize) -> Day {
    if HOLIDAYS.contains(&(hour / 24)) {
        return Day::Closed;
    }
    match time(hour).weekday() {
        Weekday::Saturday => Day::Saturday,
        Weekday::Sunday => Day::Closed,
        _ => Day::Work,
    }
}

/// How far `part` is through `whole`, from 0 to 1.
#[expect(clippy::cast_precision_loss, reason = "hours of a year")]
fn share(part: usize, whole: usize) -> f64 {
    (part % whole) as f64 / whole as f64
}

/// A sine drawn with two parabolas; `turn` counts whole turns.
fn wave(turn: f64) -> f64 {
    let turn = turn - turn.floor();
    if turn < 0.5 { 16.0 * turn * (0.5 - turn) } else { -16.0 * (turn - 0.5) * (1.0 - turn) }
}

/// SplitMix64.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Mean 0, deviation 1: twelve even chances, as precise as is needed here.
    fn normal(&mut self) -> f64 {
        /// 2^32
        const RANGE: f64 = 4_294_967_296.0;
        let sum: f64 = (0..12).map(|_| u32::try_from(self.next() >> 32).map_or(0.0, f64::from) / RANGE).sum();
        sum - 6.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::id::Digest;

    fn energy() -> Vec<f64> {
        csv().lines().skip(1).map(|line| line.split(',').nth(1).unwrap().parse().unwrap()).collect()
    }

    #[test]
    fn a_year_has_its_hours_each_once_and_in_order() {
        let text = csv();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), HOURS + 1);
        assert_eq!(lines[0], HEADER);
        assert!(lines[1].starts_with("2025-01-01 00:00:00,"));
        assert!(lines[HOURS].starts_with("2025-12-31 23:00:00,"));
        assert!(lines[1..].windows(2).all(|pair| pair[0][..19] < pair[1][..19]));
    }

    #[test]
    fn the_readings_never_change() {
        assert_eq!(
            Digest::of(csv().as_bytes()).to_string(),
            "355ea9b4ee39d114a0e9a6331160f8dfce99b920c7c56eaa4923d253bd91c050"
        );
    }

    #[test]
    fn the_events_stand_where_their_names_say() {
        let starts = ABNORMAL.map(|event| event.first());
        assert_eq!(
            starts,
            [
                "2025-02-11 20:00:00",
                "2025-03-19 14:00:00",
                "2025-05-17 07:00:00",
                "2025-06-24 09:00:00",
                "2025-08-04 00:00:00",
                "2025-12-25 06:00:00",
            ]
        );
        assert_eq!(time(ABNORMAL[2].start).weekday(), Weekday::Saturday);
        assert_eq!(day(ABNORMAL[5].start), Day::Closed);
    }

    /// Each event differs from the same hours one week before and one week after by more than chance allows.
    #[test]
    fn six_events_are_visible() {
        let energy = energy();
        let mean = |start: usize, hours: usize| {
            energy[start..start + hours].iter().sum::<f64>() / f64::from(u32::try_from(hours).unwrap())
        };
        for event in ABNORMAL {
            let here = mean(event.start, event.hours);
            let before = mean(event.start - 168, event.hours);
            let difference = (here - before).abs();
            assert!(difference > 15.0, "{:?} differs by {difference:.1} kWh only", event.kind);
        }
    }

    #[test]
    fn the_rest_looks_like_an_office() {
        let energy = energy();
        // Wednesday 15 October: night, noon; and the Sunday after it.
        let at = |day: usize, hour: usize| energy[day * 24 + hour];
        assert!(at(287, 11) > 2.0 * at(287, 3));
        assert!(at(291, 11) < 0.6 * at(287, 11));
        assert!(energy.iter().all(|value| (0.0..260.0).contains(value)));
    }
}
