//! `tidemill.test`: the parts a scripted model plays.

use mlua::{Lua, LuaSerdeExt as _, MultiValue, Value};

use super::objects::Thing;
use super::{Entry, Module};
use crate::diagnostic::Diagnostic;
use crate::model::scripted::Step;
use crate::script::host::Host;
use crate::script::raised::Raised;
use crate::script::{files, value};

/// The module.
pub(super) const MODULE: Module = Module {
    name: "tidemill.test",
    local: "test",
    doc: "Scripted models: what a model would answer, turn by turn, so that a workflow runs with no key and no \
          network.",
    entries: &[
        Entry {
            name: "script",
            signature: "(steps: (tidemill.Step|tidemill.Step[])[]): tidemill.Part",
            doc: "A model that answers with these steps, one a turn. Steps in a list of their own are one turn.",
            run: script,
        },
        Entry {
            name: "shell",
            signature: "(command: string): tidemill.Step",
            doc: "Asks for the tool `shell` with this command.",
            run: shell,
        },
        Entry {
            name: "call",
            signature: "(tool: string, arguments?: table|string): tidemill.Step",
            doc: "Asks for a tool. Arguments as text are sent as they are, to show what a broken model does.",
            run: call,
        },
        Entry {
            name: "say",
            signature: "(text: string): tidemill.Step",
            doc: "Answers with text: the end, unless the checks fail.",
            run: say,
        },
        Entry {
            name: "read",
            signature: "(path: string): string",
            doc: "The text of a file of the project.",
            run: read,
        },
    ],
    classes: &[],
};

fn script(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let host = Host::of(lua)?;
    host.loading("test.script")?;
    let place = host.call_site(lua, "script", &arguments).argument(0);
    let value = arguments.into_iter().next().unwrap_or(Value::Nil);
    let mut steps = Vec::new();
    for (index, (place, value)) in
        value::list(&host, &place, "test.script", &value).unwrap_or_default().into_iter().enumerate()
    {
        if let Some(step) = turn(&value) {
            steps.push(step);
        } else {
            let message = format!("step {} of `test.script` is {}", index + 1, value::describe(&value));
            let mistake = place.mark_value(Diagnostic::new("script::wrong_type", message), "not a step");
            host.mistake(
                mistake.help("use test.shell(...), test.call(...), test.say(...), or a list of them"),
            );
        }
    }
    lua.pack(Thing::Part(steps))
}

/// One turn: a step, or a list of steps taken together.
pub(in crate::script) fn turn(value: &Value) -> Option<Step> {
    match value {
        Value::Table(list) => {
            let mut whole = Step::default();
            for item in list.sequence_values::<Value>() {
                let Some(Thing::Step(step)) = Thing::of(&item.ok()?) else {
                    return None;
                };
                if !whole.text.is_empty() && !step.text.is_empty() {
                    whole.text.push('\n');
                }
                whole.text.push_str(&step.text);
                whole.calls.extend(step.calls);
            }
            Some(whole)
        }
        other => match Thing::of(other) {
            Some(Thing::Step(step)) => Some(step),
            _ => None,
        },
    }
}

/// The argument as text, or an error that says what `who` takes.
fn text(who: &str, what: &str, value: Option<Value>) -> mlua::Result<String> {
    match value {
        Some(Value::String(text)) => Ok(text.to_string_lossy()),
        other => {
            let got = value::describe(&other.unwrap_or(Value::Nil));
            let word = who.rsplit('.').next().unwrap_or(who);
            Err(Raised::misuse(format!("`{who}` takes {what} as text, and it is {got}")).word(word).into())
        }
    }
}

fn shell(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let command = text("test.shell", "the command", arguments.into_iter().next())?;
    let arguments = serde_json::json!({ "command": command }).to_string();
    lua.pack(Thing::Step(Step { text: String::new(), calls: vec![("shell".into(), arguments)] }))
}

fn call(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let mut arguments = arguments.into_iter();
    let tool = text("test.call", "the tool's name", arguments.next())?;
    let arguments = match arguments.next() {
        Some(Value::String(text)) => text.to_string_lossy(),
        Some(value @ Value::Table(_)) => {
            let json: serde_json::Value = lua.from_value(value)?;
            json.to_string()
        }
        None | Some(Value::Nil) => "{}".into(),
        Some(other) => {
            let message =
                format!("`test.call` takes arguments as a table, and got {}", value::describe(&other));
            return Err(Raised::misuse(message).word("call").into());
        }
    };
    lua.pack(Thing::Step(Step { text: String::new(), calls: vec![(tool, arguments)] }))
}

fn say(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let text = text("test.say", "what the model says", arguments.into_iter().next())?;
    lua.pack(Thing::Step(Step { text, calls: Vec::new() }))
}

fn read(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let host = Host::of(lua)?;
    host.loading("test.read")?;
    let path = text("test.read", "a path", arguments.into_iter().next())?;
    let text = files::normal(&path).and_then(|path| host.files().text(&path));
    let text = text.map_err(|why| {
        Raised::misuse(format!("`{}` {why}", value::shorten(&path)))
            .help("paths are relative to the project's folder")
            .word(&path)
    })?;
    lua.pack(text)
}
