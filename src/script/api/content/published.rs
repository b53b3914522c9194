//! `mill.artifacts { ... }`: what another workflow published, asked by a manifest function.

use jiff::Timestamp;
use mlua::{Lua, MultiValue, Value};

use crate::diagnostic::Diagnostic;
use crate::script::api::{Class, Field};
use crate::script::archive::Wanted;
use crate::script::declare::workflow;
use crate::script::fields::Fields;
use crate::script::host::Host;
use crate::script::place::Place;
use crate::script::published::{Filling, Published};
use crate::script::raised::Raised;
use crate::script::{time, value};
use crate::workflow::schedule::earlier;

/// What `mill.artifacts` takes in a manifest function.
pub(in crate::script::api) const WANTED: Class = Class {
    name: "tidemill.Wanted",
    word: "mill.artifacts",
    doc: "What `mill.artifacts` takes in a function that is a `manifest`: which artifacts of all runs that succeeded.",
    fields: &[
        Field { name: "workflow", kind: "string", doc: "the workflow that published them" },
        Field {
            name: "since",
            kind: "(tidemill.Time|string)?",
            doc: "Published then or later: a time such as `run.previous_scheduled_at`, or a duration such as `7d` before \
                  the instant the run is for. All without.",
        },
        Field {
            name: "until",
            kind: "(tidemill.Time|string)?",
            doc: "Published before then; up to now without.",
        },
        Field {
            name: "name",
            kind: "string?",
            doc: "Only of this name: `anomalies.csv`, or `output/anomalies.csv`.",
        },
    ],
};

/// The list for the table `query`.
pub(super) fn list(lua: &Lua, host: &Host, place: &Place, query: Value) -> mlua::Result<Value> {
    let empty = || lua.create_table().map(Value::Table);
    let Some(filling) = host.asked() else {
        let message = "`mill.artifacts { ... }` looks through what was published before a run";
        let mistake = place.mark_name(Diagnostic::new("script::misuse", message), "here");
        host.mistake(mistake.help(
            "call it in a function: manifest = function(run) ... end; or hand the last run's artifacts over with \
             mill.artifacts \"NAME\"",
        ));
        return empty();
    };
    let Some(wanted) = wanted(host, place, query, &filling) else {
        return empty();
    };
    // What the store has to say (a full disk passes, a broken file does not) is kept whole, beside the error in Lua.
    let found = filling.archive.list(&wanted).map_err(|diagnostic| {
        let raised = Raised::misuse(diagnostic.message().to_owned());
        host.mistake(diagnostic);
        raised
    })?;
    let values = found.into_iter().map(|handed| Published { handed, filling: filling.clone() });
    lua.create_sequence_from(values).map(Value::Table)
}

fn wanted(host: &Host, place: &Place, query: Value, filling: &Filling) -> Option<Wanted> {
    let fields = Fields::read(host, query, place.clone(), &WANTED)?;
    let instant = |host: &Host, place: &Place, path: &str, value: &Value| match time::instant(value) {
        Some(at) => Some(at),
        None => before(host, place, path, value, filling.now),
    };
    let (since, until) = (fields.with("since", instant), fields.with("until", instant));
    let name = fields.text("name");
    let workflow = fields.with("workflow", workflow::name)?;
    Some(Wanted { workflow, since, until, name })
}

/// So long before the instant of the run.
fn before(host: &Host, place: &Place, path: &str, value: &Value, now: Timestamp) -> Option<Timestamp> {
    if !matches!(value, Value::String(_)) {
        return value::wrong(host, place, path, "a time, or a duration such as \"7d\"", value);
    }
    value::duration(host, place, path, value).map(|duration| earlier(now, duration))
}

/// Whether the arguments of `mill.artifacts` ask, and do not declare.
pub(super) fn asks(arguments: &MultiValue) -> bool {
    matches!(arguments.front(), Some(Value::Table(_)))
}
