//! `mill.schedule { ... }`: runs by the clock.

use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use mlua::{Lua, MultiValue, Value};

use super::objects::Thing;
use super::{Class, field};
use crate::diagnostic::nearest;
use crate::script::fields::Fields;
use crate::script::host::Host;
use crate::script::place::Place;
use crate::script::value;
use crate::trigger;
use crate::workflow::schedule::{Missed, Overlap, Schedule, When};

/// What `mill.schedule` takes.
pub(super) const SCHEDULE: Class = Class {
    name: "tidemill.Schedule",
    word: "mill.schedule",
    doc: "What `mill.schedule` takes: one of `cron`, `every` and `at`, and what holds for all three.",
    fields: &[
        field(
            "cron",
            "string?",
            "Minute, hour, day of the month, month, day of the week: `0 6 * * MON`; seconds may stand before.",
        ),
        field("every", "string|number?", "A time from 1s, counted from 1970 in UTC: `6h`, or seconds."),
        field("at", "string|string[]?", "Local times: `2026-12-24 18:00`."),
        field("timezone", "string?", "An IANA name such as `Europe/Zurich`; `UTC` without."),
        field(
            "missed",
            "\"skip\"|\"latest\"|\"all\"?",
            "What becomes of instants at which nobody watched: none runs (without), one run for all, or a run each.",
        ),
        field(
            "catchup_window",
            "string|number?",
            "Missed instants older than this are skipped; without, any age for `latest` and `1d` for `all`.",
        ),
        field(
            "overlap",
            "\"skip\"|\"queue\"|\"latest\"|\"allow\"?",
            "What becomes of an instant while the run before works: it is skipped (without), it waits its turn, only the \
             latest of them waits, or it runs beside.",
        ),
        field("start_deadline", "string|number?", "A run that has not begun by then does not begin."),
        field(
            "jitter",
            "string|number?",
            "Starts are spread over this time, each instant always at the same place in it.",
        ),
    ],
};

/// Missed instants of `missed = "all"` are this old at most where nothing is said: each costs a run.
const CATCHUP_ALL: Duration = Duration::from_hours(24);

/// The code of a field that cannot be.
const CODE: &str = "script::bad_schedule";

/// What no run can keep up with.
const SHORTEST: Duration = Duration::from_secs(1);

/// Reads it; what is wrong is noted, and something of the right kind stands in for it.
pub(super) fn schedule(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let host = Host::of(lua)?;
    host.loading("mill.schedule")?;
    let place = host.call_site(lua, "schedule", &arguments).argument(0);
    let value = arguments.into_iter().next().unwrap_or(Value::Nil);
    let schedule = match Fields::read(&host, value, place, &SCHEDULE) {
        Some(fields) => read(&fields),
        None => Schedule {
            when: When::Every(SHORTEST),
            timezone: TimeZone::UTC,
            missed: Missed::default(),
            catchup_window: None,
            overlap: Overlap::default(),
            start_deadline: None,
            jitter: Duration::ZERO,
        },
    };
    lua.pack(Thing::Schedule(Box::new(schedule)))
}

fn read(fields: &Fields<'_>) -> Schedule {
    let missed = fields.with("missed", |host, place, path, value| {
        value::word(host, place, path, value, CODE, &Missed::ALL, Missed::as_str)
    });
    let missed = missed.unwrap_or_default();
    let overlap = fields.with("overlap", |host, place, path, value| {
        value::word(host, place, path, value, CODE, &Overlap::ALL, Overlap::as_str)
    });
    let window = fields.with("catchup_window", value::duration);
    let when = when(fields);
    let start_deadline = fields.with("start_deadline", value::duration);
    let jitter = fields.with("jitter", value::duration).unwrap_or_default();
    let period = if let When::Every(period) = when { Some(period) } else { None };
    for (name, most) in [("every", period), ("start_deadline", start_deadline)] {
        if most.is_some_and(|most| jitter >= most) && !jitter.is_zero() {
            fields.with("jitter", |host, place, _, _| {
                let message = format!("`mill.schedule.jitter` is not less than `{name}`");
                let help = "starts are spread over all of it, and some would come too late";
                value::bad::<()>(host, place, "script::bad_schedule", message, help)
            });
        }
    }
    Schedule {
        when,
        timezone: fields.with("timezone", zone).unwrap_or(TimeZone::UTC),
        missed,
        catchup_window: window.or((missed == Missed::All).then_some(CATCHUP_ALL)),
        overlap: overlap.unwrap_or_default(),
        start_deadline,
        jitter,
    }
}

/// One of the three.
fn when(fields: &Fields<'_>) -> When {
    let said: Vec<&str> =
        ["cron", "every", "at"].into_iter().filter(|name| fields.value(name) != Value::Nil).collect();
    if said.is_empty() && fields.are_of(&SCHEDULE) {
        fields.lacks("cron", "the instants it fires at; or `every` or `at` instead");
    }
    for (name, other) in said.iter().skip(1).map(|name| (name, said[0])) {
        fields.with(name, |host, place, _, _| {
            let message = format!("`mill.schedule` has `{other}` and `{name}`");
            let help = "a schedule has one of `cron`, `every` and `at`; `triggers` takes several schedules";
            value::bad::<()>(host, place, "script::bad_schedule", message, help)
        });
    }
    let cron = fields.with("cron", cron).map(When::Cron);
    let every = fields.with("every", every).map(When::Every);
    let at = fields.with("at", times).map(When::At);
    cron.or(every).or(at).unwrap_or(When::Every(SHORTEST))
}

fn cron(host: &Host, place: &Place, path: &str, value: &Value) -> Option<String> {
    let text = value::text(host, place, path, value)?;
    match trigger::schedule::check(&text) {
        Ok(()) => Some(text.split_whitespace().collect::<Vec<_>>().join(" ")),
        Err(why) => {
            let message = format!("`{}` is not a cron pattern that can fire: {why}", value::shorten(&text));
            let help = "minute, hour, day of the month, month, day of the week: `0 6 * * MON`, `*/15 8-18 * * MON-FRI`";
            value::bad(host, place, "script::bad_schedule", message, help)
        }
    }
}

fn every(host: &Host, place: &Place, path: &str, value: &Value) -> Option<Duration> {
    let period = value::duration(host, place, path, value)?;
    if period >= SHORTEST {
        return Some(period);
    }
    let message = format!("`{path}` is less than a second");
    value::bad(host, place, "script::bad_schedule", message, "write it like `15m`, `6h` or `1d`")
}

/// One time, or a list of them.
fn times(host: &Host, place: &Place, path: &str, value: &Value) -> Option<Vec<DateTime>> {
    if !matches!(value, Value::Table(_)) {
        return Some(vec![time(host, place, path, value)?]);
    }
    let items = value::list(host, place, path, value)?;
    let times: Vec<DateTime> = items
        .iter()
        .enumerate()
        .filter_map(|(index, (place, value))| time(host, place, &format!("{path}[{}]", index + 1), value))
        .collect();
    if items.is_empty() {
        return value::bad(
            host,
            place,
            "script::bad_schedule",
            format!("`{path}` has no times"),
            "name one, or leave the schedule out",
        );
    }
    Some(times)
}

fn time(host: &Host, place: &Place, path: &str, value: &Value) -> Option<DateTime> {
    let text = value::text(host, place, path, value)?;
    // A zone in the text would be passed over, and the run started at another time than the one that is written.
    match text.parse::<DateTime>() {
        Ok(time) if !text.contains(['[', '+', 'Z', 'z']) => Some(time),
        _ => {
            let message = format!("`{}` is not a local time", value::shorten(&text));
            let help = "write it like `2026-12-24 18:00`; where that is says `timezone`";
            value::bad(host, place, "script::bad_schedule", message, help)
        }
    }
}

fn zone(host: &Host, place: &Place, path: &str, value: &Value) -> Option<TimeZone> {
    let text = value::text(host, place, path, value)?;
    if let Ok(zone) = TimeZone::get(&text)
        && zone.iana_name().is_some()
    {
        return Some(zone);
    }
    let known: Vec<String> = jiff::tz::db().available().map(|name| name.to_string()).collect();
    let message = format!("there is no time zone `{}`", value::shorten(&text));
    let help = match nearest_zone(&text, &known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "write its IANA name, such as `Europe/Zurich`, `America/New_York` or `UTC`".to_owned(),
    };
    value::bad(host, place, "script::unknown_timezone", message, &help)
}

/// By the whole name, or by the city alone.
fn nearest_zone<'a>(text: &str, known: &'a [String]) -> Option<&'a str> {
    let city = |name: &'a str| name.rsplit('/').next().unwrap_or(name);
    let wanted = text.replace(' ', "_");
    let whole = known.iter().map(String::as_str).find(|name| city(name).eq_ignore_ascii_case(&wanted));
    whole.or_else(|| nearest(&wanted, known.iter().map(String::as_str)))
}
