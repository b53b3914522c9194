//! `tidemill.guard`: guardrails and their verdicts.

use mlua::{Lua, MultiValue, Value};

use super::objects::Thing;
use super::{Class, Entry, Field, Module};
use crate::diagnostic::Diagnostic;
use crate::event::verdict::Verdict;
use crate::script::fields::Fields;
use crate::script::host::Host;
use crate::script::raised::Raised;
use crate::script::{format, value};
use crate::workflow::guardrail::Guardrail;

/// The module.
pub(super) const MODULE: Module = Module {
    name: "tidemill.guard",
    local: "guard",
    doc: "Guardrails: what is checked before something happens, and what such a check says.",
    entries: &[
        Entry {
            name: "input_size",
            signature: "(options: tidemill.InputSize): tidemill.Guardrail",
            doc: "Refuses dropped files that are too large.",
            run: input_size,
        },
        Entry {
            name: "commands",
            signature: "(options: tidemill.Commands): tidemill.Guardrail",
            doc: "Judges every simple command of every shell call, also in pipes, lists, substitutions and under \
                  `sh -c`. The strictest rule that matches counts; with `allow`, what no rule matches is denied.",
            run: commands,
        },
        Entry {
            name: "pass",
            signature: "(): tidemill.Verdict",
            doc: "Go on. Returning nothing says the same.",
            run: pass,
        },
        Entry {
            name: "deny",
            signature: "(reason: string, ...: any): tidemill.Verdict",
            doc: "Stop, and why; further arguments are formatted in as by `string.format`.",
            run: deny,
        },
        Entry {
            name: "ask",
            signature: "(reason: string, ...: any): tidemill.Verdict",
            doc: "A person must say yes. Denies until approvals exist.",
            run: ask,
        },
        Entry {
            name: "replace",
            signature: "(text: string, reason?: string): tidemill.Verdict",
            doc: "Go on with this text instead: the prompt, the tool's arguments (JSON), its output, or the answer.",
            run: replace,
        },
    ],
    classes: &[&INPUT_SIZE, &COMMANDS, &INLINE],
};

const INPUT_SIZE: Class = Class {
    name: "tidemill.InputSize",
    word: "guard.input_size",
    doc: "What `guard.input_size` takes.",
    fields: &[Field {
        name: "max",
        kind: "string|integer",
        doc: "The largest size allowed: `20MB`, or bytes.",
    }],
};

const COMMANDS: Class = Class {
    name: "tidemill.Commands",
    word: "guard.commands",
    doc: "What `guard.commands` takes: patterns such as `curl *`.",
    fields: &[
        Field {
            name: "deny",
            kind: "string[]?",
            doc: "Commands that are refused.",
        },
        Field {
            name: "ask",
            kind: "string[]?",
            doc: "Commands a person must agree to.",
        },
        Field {
            name: "allow",
            kind: "string[]?",
            doc: "Commands that may run; without it, everything not denied.",
        },
    ],
};

/// A guardrail written as a table.
pub(in crate::script) const INLINE: Class = Class {
    name: "tidemill.InlineGuardrail",
    word: "guardrail",
    doc: "A guardrail of your own, written into `guardrails`.",
    fields: &[
        Field {
            name: "on",
            kind: "\"input\"|\"prompt\"|\"tool_call\"|\"tool_output\"|\"answer\"",
            doc: "before what it is asked",
        },
        Field {
            name: "name",
            kind: "string?",
            doc: "its name in logs",
        },
        Field {
            name: "check",
            kind: "fun(subject: table, run: tidemill.Run): (tidemill.Verdict|nil)",
            doc: "gets the subject (`input`: name, size; `prompt` and `answer`: text; `tool_call`: tool, arguments; \
                  `tool_output`: tool, output) and the run; gives a verdict, or nothing to pass",
        },
    ],
};

fn input_size(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let host = Host::of(lua)?;
    host.loading("guard.input_size")?;
    let place = host.call_site(lua, "input_size", &arguments).argument(0);
    let value = arguments.into_iter().next().unwrap_or(Value::Nil);
    let fields = Fields::read(&host, value, place, &INPUT_SIZE);
    let max = fields.as_ref().and_then(|fields| fields.with("max", value::size));
    if let (Some(0), Some(fields)) = (max, &fields) {
        let message = "`guard.input_size.max` is 0, so every file would be refused".to_owned();
        value::bad::<()>(
            &host,
            &fields.at("max"),
            "script::bad_limit",
            message,
            "write it like `20MB`",
        );
    }
    lua.pack(Thing::Guardrail(Guardrail::InputSize {
        max: max.unwrap_or(0),
    }))
}

fn commands(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let host = Host::of(lua)?;
    host.loading("guard.commands")?;
    let place = host.call_site(lua, "commands", &arguments).argument(0);
    let value = arguments.into_iter().next().unwrap_or(Value::Nil);
    let mut guardrail = Guardrail::Commands {
        deny: Vec::new(),
        ask: Vec::new(),
        allow: Vec::new(),
    };
    if let Some(fields) = Fields::read(&host, value, place, &COMMANDS) {
        let patterns = |name: &str| {
            let patterns = fields.texts(name);
            for (index, _) in patterns
                .iter()
                .enumerate()
                .filter(|(_, pattern)| pattern.trim().is_empty())
            {
                let message = format!("`{}[{}]` is empty", fields.path(name), index + 1);
                let place = fields.at(name).item(index + 1);
                value::bad::<()>(
                    &host,
                    &place,
                    "script::bad_pattern",
                    message,
                    "write it like `curl *`",
                );
            }
            patterns
        };
        let (deny, ask, allow) = (patterns("deny"), patterns("ask"), patterns("allow"));
        if ["deny", "ask", "allow"]
            .iter()
            .all(|name| fields.value(name) == Value::Nil)
        {
            fields.note(
                "script::missing_field",
                "`guard.commands` has no rule, so it guards nothing".to_owned(),
            );
        }
        guardrail = Guardrail::Commands { deny, ask, allow };
    }
    lua.pack(Thing::Guardrail(guardrail))
}

fn pass(lua: &Lua, _: MultiValue) -> mlua::Result<Value> {
    lua.pack(Thing::Verdict(Verdict::Pass))
}

fn deny(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let reason = format::sentence(lua, "guard.deny", arguments)?;
    lua.pack(Thing::Verdict(Verdict::Deny { reason }))
}

fn ask(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let reason = format::sentence(lua, "guard.ask", arguments)?;
    lua.pack(Thing::Verdict(Verdict::Ask { reason }))
}

fn replace(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let mut arguments = arguments.into_iter();
    let mut text = |what: &str| match arguments.next() {
        Some(Value::String(text)) => Ok(Some(text.to_string_lossy())),
        None | Some(Value::Nil) => Ok(None),
        Some(other) => {
            let message = format!(
                "`guard.replace` takes {what} as text, and got {}",
                value::describe(&other)
            );
            Err(Raised::misuse(message).word("replace"))
        }
    };
    let with = text("the new text")?
        .ok_or_else(|| Raised::misuse("`guard.replace` needs the new text").word("replace"))?;
    let reason = text("the reason")?.unwrap_or_else(|| "replaced by the script".into());
    lua.pack(Thing::Verdict(Verdict::Replace { with, reason }))
}

/// Notes that a list of guardrails holds something else.
pub(in crate::script) fn not_a_guardrail(host: &Host, place: &crate::script::place::Place, value: &Value) {
    let message = format!("`guardrails` holds {}", value::describe(value));
    let mistake = place.mark_value(Diagnostic::new("script::wrong_type", message), "not a guardrail");
    host.mistake(
        mistake
            .help("use `guard.input_size`, `guard.commands`, or { on = ..., name = ..., check = function }"),
    );
}
