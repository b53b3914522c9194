//! `mill.artifacts`: what another workflow published.

use mlua::{Lua, MultiValue, Value};

use super::{ACCESS, MODE, published, rights};
use crate::event::id::RunId;
use crate::script::api::objects::{Rights, Thing};
use crate::script::api::{Class, Field};
use crate::script::declare::{manifest, workflow};
use crate::script::fields::Fields;
use crate::script::host::Host;
use crate::script::place::Place;
use crate::script::value;
use crate::workflow::manifest::{Content, Handover, Which};

pub(in crate::script::api) const ARTIFACTS: Class = Class {
    name: "tidemill.Artifacts",
    word: "mill.artifacts",
    doc: "What `mill.artifacts` takes besides the workflow.",
    fields: &[
        Field {
            name: "path",
            kind: "string?",
            doc: "The one that is wanted, as that workflow's `outputs` name it; all of them without.",
        },
        Field {
            name: "which",
            kind: "string?",
            doc: "`latest` (the last run that succeeded), or the id of a run.",
        },
        Field {
            name: "optional",
            kind: "boolean?",
            doc: "Whether nothing is placed, instead of the run failing, while no run has succeeded yet.",
        },
        ACCESS,
        MODE,
    ],
};

/// `mill.artifacts(workflow, options?)`, and `mill.artifacts { ... }` in a manifest function.
pub(in crate::script::api) fn artifacts(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let host = Host::of(lua)?;
    host.filling("mill.artifacts")?;
    let site = host.call_site(lua, "artifacts", &arguments);
    if published::asks(&arguments) {
        let query = arguments.into_iter().next().unwrap_or(Value::Nil);
        return published::list(lua, &host, &site.argument(0), query);
    }
    let mut arguments = arguments.into_iter();
    let value = arguments.next().unwrap_or(Value::Nil);
    let place = site.argument(0);
    let name = workflow::name(&host, &place, "mill.artifacts", &value);
    if let Some(name) = &name {
        host.name(name, place);
    }
    let mut handover =
        Handover { workflow: name.unwrap_or_default(), path: None, which: Which::Latest, optional: false };
    let mut granted = Rights::default();
    if let Some(value) = arguments.next().filter(|value| *value != Value::Nil)
        && let Some(fields) = Fields::read(&host, value, site.argument(1), &ARTIFACTS)
    {
        // One that is wrong is one all the same.
        handover.path = fields.with("path", |host, place, path, value| {
            Some(artifact(host, place, path, value).unwrap_or_default())
        });
        handover.which = fields.with("which", which).unwrap_or_default();
        handover.optional = fields.flag("optional").unwrap_or_default();
        granted = rights(&host, &fields);
    }
    lua.pack(Thing::Content(Content::Artifacts(handover), granted))
}

fn artifact(host: &Host, place: &Place, path: &str, value: &Value) -> Option<String> {
    let text = value::text(host, place, path, value)?;
    let path = manifest::workspace_path(host, place, &text)?;
    if path.is_folder() {
        let message = format!("`{path}` is a folder, and an artifact is a file");
        let help = "name one file, or leave `path` out to get all of them";
        return value::bad(host, place, "script::bad_path", message, help);
    }
    Some(path.to_string())
}

fn which(host: &Host, place: &Place, path: &str, value: &Value) -> Option<Which> {
    let text = value::text(host, place, path, value)?;
    let run = || RunId::parse(&text).filter(|_| text.contains(|c: char| c.is_ascii_digit())).map(Which::Run);
    let which = if text == "latest" { Some(Which::Latest) } else { run() };
    which.or_else(|| {
        let message = format!("`{path}` is \"{}\"", value::shorten(&text));
        value::bad(host, place, "script::wrong_type", message, "it is \"latest\", or the id of a run")
    })
}
