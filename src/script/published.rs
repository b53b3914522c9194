//! A published artifact as a manifest function sees it: a value to place, or to read.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use mlua::{MetaMethod, UserData, UserDataFields, UserDataMethods, Value};

use super::api::Class;
use super::api::field;
use super::archive::{Archive, Handed};
use super::raised::Raised;
use super::time::Time;
use super::view::{FILE_METHODS, expected, unknown};
use super::{reading, value};
use crate::workflow::manifest::{Handover, Which};

/// What a manifest function may ask.
#[derive(Debug, Clone)]
pub(super) struct Filling {
    /// What was published.
    pub(super) archive: Arc<dyn Archive>,
    /// The instant the run is for: durations such as `7d` count back from it.
    pub(super) now: Timestamp,
    /// Where dates are at home.
    pub(super) timezone: TimeZone,
}

/// What `mill.artifacts { ... }` gives a list of.
pub(super) const PUBLISHED: Class = Class {
    name: "tidemill.Published",
    word: "artifact",
    doc: "An artifact that another run published: a value for the manifest, which may be read as well. Its bytes are \
          those that were published, or it is refused.",
    fields: &[
        field("run_id", "string", "The run that published it."),
        field("name", "string", "As it stands in that run's folder of the outbox, e.g. `anomalies.csv`."),
        field("path", "string", "As its workflow declares it, e.g. `output/anomalies.csv`."),
        field("size", "integer", "Bytes."),
        field("published_at", "tidemill.Time", "When it was published."),
        FILE_METHODS[0],
        FILE_METHODS[1],
        FILE_METHODS[2],
        FILE_METHODS[3],
    ],
};

/// The value.
#[derive(Debug, Clone)]
pub(super) struct Published {
    pub(super) handed: Handed,
    pub(super) filling: Filling,
}

impl Published {
    /// What a manifest takes it for, when the value is one.
    pub(super) fn handover(value: &Value) -> Option<Handover> {
        let published = value.as_userdata()?.borrow::<Self>().ok()?;
        Some(Handover {
            workflow: published.handed.workflow.clone(),
            path: Some(published.handed.path.clone()),
            which: Which::Run(published.handed.run.clone()),
            optional: false,
        })
    }

    fn shown(&self) -> String {
        value::shorten(&self.handed.name)
    }

    /// The published bytes; the error is a sentence.
    fn file(&self) -> Result<PathBuf, String> {
        self.filling.archive.file(&self.handed).map_err(|error| error.message().to_owned())
    }

    /// For a loop, where `nil, why` would only say that nil cannot be called.
    fn open(&self) -> mlua::Result<PathBuf> {
        Ok(self.file().map_err(Raised::misuse)?)
    }
}

impl UserData for Published {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_field_method_get("run_id", |_, found| Ok(found.handed.run.to_string()));
        fields.add_field_method_get("name", |_, found| Ok(found.handed.name.clone()));
        fields.add_field_method_get("path", |_, found| Ok(found.handed.path.clone()));
        fields.add_field_method_get("size", |_, found| Ok(found.handed.size));
        fields.add_field_method_get("published_at", |_, found| {
            Ok(Time { at: found.handed.at, timezone: found.filling.timezone.clone() })
        });
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("csv", |lua, found, ()| reading::csv(lua, &found.open()?, found.shown()));
        methods.add_method("lines", |lua, found, ()| reading::lines(lua, &found.open()?, found.shown()));
        methods.add_method("json", |lua, found, ()| {
            expected(lua, found.file().and_then(|file| reading::json(lua, &file, &found.shown())))
        });
        methods.add_method("text", |lua, found, ()| {
            expected(lua, found.file().and_then(|file| reading::text(&file, &found.shown())))
        });
        methods.add_meta_method(MetaMethod::Index, |_, _, name: String| -> mlua::Result<()> {
            Err(unknown(&PUBLISHED, &name))
        });
    }
}
