//! `mill.input`, `mill.file` and the others whose content lies in the project or in the script.

pub(super) mod artifacts;
pub(super) mod git;
pub(super) mod published;
pub(super) mod url;

use ignore::gitignore::GitignoreBuilder;
use mlua::{Lua, MultiValue, Value};

use super::objects::{Rights, Thing};
use super::{Class, Field};
use crate::script::declare::manifest;
use crate::script::fields::Fields;
use crate::script::host::Host;
use crate::script::place::Place;
use crate::script::raised::Raised;
use crate::script::{files, value};
use crate::workflow::manifest::{Access, Content, Folder};
use crate::workflow::mode::Mode;

const ACCESS: Field =
    Field { name: "access", kind: "\"ro\"|\"rw\"?", doc: "`rw` lets the agent change it; `ro` without." };

const MODE: Field = Field {
    name: "mode",
    kind: "string|integer?",
    doc: "Permission bits of its files in octal, as `chmod` takes them: `\"0755\"`. Write bits of a `ro` entry do \
          nothing. Without, programs of the project stay programs.",
};

const IGNORE: Field = Field {
    name: "ignore",
    kind: "string[]?",
    doc: "What is left out, as lines of a `.gitignore`: `*.tmp`, `cache/`, `!keep.tmp`.",
};

pub(super) const RIGHTS: Class = Class {
    name: "tidemill.Rights",
    word: "options",
    doc: "What the agent may do with an entry of the manifest.",
    fields: &[ACCESS, MODE],
};

pub(super) const DIR: Class = Class {
    name: "tidemill.Dir",
    word: "mill.dir",
    doc: "What `mill.dir` takes besides the folder. A file `.tidemillignore` in the folder counts before `ignore`.",
    fields: &[IGNORE, ACCESS, MODE],
};

/// `mill.input(options?)`
pub(super) fn input(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let host = Host::of(lua)?;
    host.filling("mill.input")?;
    let place = host.call_site(lua, "input", &arguments).argument(0);
    let rights = options(&host, &place, arguments.into_iter().next());
    lua.pack(Thing::Content(Content::Input, rights))
}

/// `mill.file(path, options?)`
pub(super) fn file(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let host = Host::of(lua)?;
    let site = host.call_site(lua, "file", &arguments);
    let mut arguments = arguments.into_iter();
    let value = arguments.next().unwrap_or(Value::Nil);
    if host.is_running() && !host.is_filling() {
        // Only what was read when the script loaded: a run is pinned to it.
        let Value::String(path) = &value else {
            return Err(Raised::misuse("`mill.file` takes a path").word("file").into());
        };
        let path = files::normal(&path.to_string_lossy())
            .map_err(|why| Raised::misuse(format!("the path {why}")))?;
        return lua.pack(Thing::Content(Content::File(path), Rights::default()));
    }
    let path = manifest::project_path(&host, &site.argument(0), "mill.file", &value, manifest::Wanted::File);
    let rights = options(&host, &site.argument(1), arguments.next());
    lua.pack(Thing::Content(Content::File(path.unwrap_or_default()), rights))
}

/// `mill.dir(path, options?)`
pub(super) fn dir(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let host = Host::of(lua)?;
    host.filling("mill.dir")?;
    let site = host.call_site(lua, "dir", &arguments);
    let mut arguments = arguments.into_iter();
    let value = arguments.next().unwrap_or(Value::Nil);
    let path = manifest::project_path(&host, &site.argument(0), "mill.dir", &value, manifest::Wanted::Folder);
    let mut folder = Folder { path: path.unwrap_or_default(), ignore: Vec::new() };
    let mut granted = Rights::default();
    if let Some(value) = arguments.next().filter(|value| *value != Value::Nil)
        && let Some(fields) = Fields::read(&host, value, site.argument(1), &DIR)
    {
        folder.ignore = fields.with("ignore", rules).unwrap_or_default();
        granted = rights(&host, &fields);
    }
    lua.pack(Thing::Content(Content::Dir(folder), granted))
}

/// `mill.text(text, options?)`
pub(super) fn text(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let host = Host::of(lua)?;
    host.filling("mill.text")?;
    let site = host.call_site(lua, "text", &arguments);
    let mut arguments = arguments.into_iter();
    let value = arguments.next().unwrap_or(Value::Nil);
    let text = value::text(&host, &site.argument(0), "mill.text", &value);
    let rights = options(&host, &site.argument(1), arguments.next());
    lua.pack(Thing::Content(Content::Text(text.unwrap_or_default()), rights))
}

/// `mill.bytes(bytes, options?)`
pub(super) fn bytes(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let host = Host::of(lua)?;
    host.filling("mill.bytes")?;
    let site = host.call_site(lua, "bytes", &arguments);
    let mut arguments = arguments.into_iter();
    let value = arguments.next().unwrap_or(Value::Nil);
    let bytes = match &value {
        Value::String(bytes) => Some(bytes.as_bytes().to_vec()),
        other => value::wrong(&host, &site.argument(0), "mill.bytes", "a string", other),
    };
    let rights = options(&host, &site.argument(1), arguments.next());
    lua.pack(Thing::Content(Content::Bytes(bytes.unwrap_or_default()), rights))
}

fn options(host: &Host, place: &Place, value: Option<Value>) -> Rights {
    let value = value.filter(|value| *value != Value::Nil);
    let fields = value.and_then(|value| Fields::read(host, value, place.clone(), &RIGHTS));
    fields.map(|fields| rights(host, &fields)).unwrap_or_default()
}

/// Options that are needed: none at all are none of those that are needed.
fn given(lua: &Lua, value: Option<Value>) -> mlua::Result<Value> {
    match value {
        None | Some(Value::Nil) => lua.create_table().map(Value::Table),
        Some(value) => Ok(value),
    }
}

/// Reads `access` and `mode`.
fn rights(host: &Host, fields: &Fields<'_>) -> Rights {
    let access = fields.with("access", access).unwrap_or_default();
    let mode = fields.with("mode", mode);
    if let (Access::ReadOnly, Some(mode)) = (access, mode) {
        let why = match mode {
            mode if mode.others_write() => Some("lets the agent write"),
            mode if !mode.others_read() => Some("keeps the agent from reading"),
            _ => None,
        };
        if let Some(why) = why {
            let message = format!("the mode {mode} {why}, and the entry is read-only");
            let help = "a read-only entry belongs to root, so the last digit is the agent's: \"0644\" or \"0755\"; say \
                        access = \"rw\" for a file of the agent's own";
            value::bad::<()>(host, &fields.at("mode"), "script::bad_mode", message, help);
        }
    }
    Rights { access, mode }
}

fn access(host: &Host, place: &Place, _: &str, value: &Value) -> Option<Access> {
    match value::text(host, place, "access", value)?.as_str() {
        "ro" => Some(Access::ReadOnly),
        "rw" => Some(Access::ReadWrite),
        other => {
            let message = format!("`access` is \"{}\"", value::shorten(other));
            value::bad(host, place, "script::wrong_type", message, "it is \"ro\" or \"rw\"")
        }
    }
}

/// Lua has no octal numbers, so the digits of a number are what they look like: 755 is `0755`.
fn mode(host: &Host, place: &Place, path: &str, value: &Value) -> Option<Mode> {
    let digits = match value {
        Value::Integer(number) if *number >= 0 => format!("{number:03}"),
        Value::String(text) => text.to_string_lossy(),
        other => return value::wrong(host, place, path, "a mode such as \"0644\"", other),
    };
    match Mode::parse(&digits) {
        Ok(mode) => Some(mode),
        Err(why) => {
            let message = format!("the mode `{}` {why}", value::shorten(&digits));
            value::bad(host, place, "script::bad_mode", message, "write it as for chmod: \"0644\", \"0755\"")
        }
    }
}

fn rules(host: &Host, place: &Place, path: &str, value: &Value) -> Option<Vec<String>> {
    let mut rules = Vec::new();
    for (index, (place, value)) in value::list(host, place, path, value)?.into_iter().enumerate() {
        let Some(rule) = value::text(host, &place, &format!("{path}[{}]", index + 1), &value) else {
            continue;
        };
        let why = match GitignoreBuilder::new("").add_line(None, &rule) {
            Err(error) => Some(error.to_string()),
            Ok(_) if rule.contains('\n') => Some("it has more than one line".to_owned()),
            Ok(_) if rule.trim().is_empty() || rule.starts_with('#') => Some("it says nothing".to_owned()),
            Ok(_) => None,
        };
        if let Some(why) = why {
            let message = format!("`{}` is no ignore rule: {why}", value::shorten(&rule));
            let help = "write it as in a .gitignore: `*.tmp`, `cache/`, `!keep.tmp`";
            value::bad::<()>(host, &place, "script::bad_glob", message, help);
            continue;
        }
        rules.push(rule);
    }
    Some(rules)
}
