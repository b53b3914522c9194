//! The agent, and text that may stand in a file.

use mlua::Value;

use crate::diagnostic::Diagnostic;
use crate::script::api::objects::Thing;
use crate::script::api::{Class, Field};
use crate::script::fields::Fields;
use crate::script::host::Host;
use crate::script::place::Place;
use crate::script::value;
use crate::workflow::agent::{Agent, Memory};
use crate::workflow::manifest::Content;

/// What `agent` takes.
pub(in crate::script) const AGENT: Class = Class {
    name: "tidemill.Agent",
    word: "agent",
    doc: "Who does the work.",
    fields: &[
        Field { name: "name", kind: "string?", doc: "A name for logs." },
        Field {
            name: "model",
            kind: "string",
            doc: "a model of tidemill.toml, or the provider's own name for one",
        },
        Field {
            name: "instructions",
            kind: "string|tidemill.Content?",
            doc: "What it is told before the prompt: text or a `mill.file`.",
        },
        Field {
            name: "max_turns",
            kind: "integer?",
            doc: "Model calls at most, repairs included; 30 without.",
        },
        Field {
            name: "memory",
            kind: "boolean?",
            doc: "Whether it keeps notes from run to run. It has no effect yet, and `check` says so.",
        },
    ],
};

/// More turns than any job needs; an endless loop still ends.
const MOST_TURNS: u64 = 10_000;

/// Reads the field `agent`.
pub(super) fn read(host: &Host, place: &Place, value: &Value) -> Option<Agent> {
    let fields = Fields::read(host, value.clone(), place.clone(), &AGENT)?;
    let max_turns = fields.count("max_turns").and_then(|turns| {
        u32::try_from(turns).ok().filter(|_| (1..=MOST_TURNS).contains(&turns)).or_else(|| {
            let message = format!("`agent.max_turns` is {turns}");
            let help = format!("it is from 1 to {MOST_TURNS}");
            value::bad(host, &fields.at("max_turns"), "script::bad_limit", message, &help)
        })
    });
    let model = fields.text("model");
    if model.as_ref().is_some_and(|model| model.trim().is_empty()) {
        let help = "name a model of tidemill.toml";
        value::bad::<()>(
            host,
            &fields.at("model"),
            "script::wrong_type",
            "`agent.model` is empty".into(),
            help,
        );
    }
    let memory = fields.with("memory", memory).unwrap_or_default();
    Some(Agent {
        memory,
        name: fields.text("name").unwrap_or_else(|| "agent".into()),
        model: model.unwrap_or_default(),
        instructions: fields.with("instructions", words).unwrap_or_default(),
        max_turns: max_turns.unwrap_or(Agent::DEFAULT_MAX_TURNS),
    })
}

fn memory(host: &Host, place: &Place, path: &str, value: &Value) -> Option<Memory> {
    if !value::flag(host, place, path, value)? {
        return Some(Memory::None);
    }
    let message = "`agent.memory` has no effect yet: nothing is kept from run to run";
    let warning = place.mark_name(Diagnostic::new("script::no_effect", message), "here").warning();
    host.mistake(warning.help("the workflow runs as without it; leave it out to be rid of this warning"));
    Some(Memory::Notes)
}

/// Text, or the text of a `mill.file`.
pub(super) fn words(host: &Host, place: &Place, path: &str, value: &Value) -> Option<String> {
    match Thing::of(value) {
        Some(Thing::Content(Content::Text(text), _)) => Some(text),
        // A path that was refused has been noted already.
        Some(Thing::Content(Content::File(file), _)) if file.is_empty() => None,
        Some(Thing::Content(Content::File(file), _)) => host.files().text(&file).map_or_else(
            |why| {
                let message = format!("`{}` {why}", value::shorten(&file));
                value::bad(
                    host,
                    place,
                    "script::missing_file",
                    message,
                    "a prompt is UTF-8 text of at most 1 MiB",
                )
            },
            Some,
        ),
        Some(Thing::Secret(_)) => {
            let message = format!("`{path}` is a secret, and secrets never reach a model");
            value::bad(host, place, "script::secret_in_text", message, "say in words what is to be done")
        }
        _ => match value {
            Value::String(_) => value::text(host, place, path, value),
            other => value::wrong(host, place, path, "text or a mill.file", other),
        },
    }
}
