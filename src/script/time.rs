//! An instant as functions of a script see it: text, and a date where its schedule is at home.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use mlua::{MetaMethod, UserData, UserDataMethods, Value};

use super::api::{Class, Field};
use super::view::unknown;

/// `run.scheduled_at`
pub(super) const TIME: Class = Class {
    name: "tidemill.Time",
    word: "time",
    doc: "An instant. As text it is UTC, as 2026-11-30T06:00:00Z; times can be compared.",
    fields: &[
        Field {
            name: "date",
            kind: "fun(self): string",
            doc: "Its date in the time zone of the schedule, as 2026-11-30.",
        },
        Field {
            name: "clock",
            kind: "fun(self): string",
            doc: "Its time of the day in the time zone of the schedule, as 06:00:00.",
        },
    ],
};

/// The value of `run.scheduled_at`.
#[derive(Debug, Clone)]
pub(super) struct Time {
    pub(super) at: Timestamp,
    pub(super) timezone: TimeZone,
}

impl UserData for Time {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("date", |_, time, ()| Ok(time.timezone.to_datetime(time.at).date().to_string()));
        methods.add_method("clock", |_, time, ()| {
            Ok(time.timezone.to_datetime(time.at).strftime("%H:%M:%S").to_string())
        });
        methods.add_meta_method(MetaMethod::ToString, |_, time, ()| Ok(time.at.to_string()));
        methods.add_meta_function(MetaMethod::Concat, |_, (left, right): (Value, Value)| {
            Ok(format!("{}{}", left.to_string()?, right.to_string()?))
        });
        methods.add_meta_function(MetaMethod::Eq, |_, (left, right): (Value, Value)| {
            Ok(instant(&left).is_some_and(|left| Some(left) == instant(&right)))
        });
        methods.add_meta_function(MetaMethod::Lt, |_, (left, right): (Value, Value)| {
            both(&left, &right).map(|(left, right)| left < right)
        });
        methods.add_meta_function(MetaMethod::Le, |_, (left, right): (Value, Value)| {
            both(&left, &right).map(|(left, right)| left <= right)
        });
        methods.add_meta_method(MetaMethod::Index, |_, _, name: String| -> mlua::Result<()> {
            Err(unknown(&TIME, &name))
        });
    }
}

/// The instant in a Lua value, when it is one.
pub(super) fn instant(value: &Value) -> Option<Timestamp> {
    value.as_userdata()?.borrow::<Time>().ok().map(|time| time.at)
}

fn both(left: &Value, right: &Value) -> mlua::Result<(Timestamp, Timestamp)> {
    instant(left).zip(instant(right)).ok_or_else(|| {
        super::raised::Raised::misuse("a time can be compared with a time".to_owned())
            .help("both sides are to be such as run.scheduled_at")
            .into()
    })
}
