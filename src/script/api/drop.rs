//! `mill.drop`, and where its files go afterwards.

use mlua::{Lua, MultiValue, Value};

use super::objects::Thing;
use super::{Class, field};
use crate::script::fields::Fields;
use crate::script::host::Host;
use crate::script::place::Place;
use crate::script::value;
use crate::trigger::drop_folder::captures::Glob;
use crate::trigger::drop_folder::company::Naming;
use crate::trigger::drop_folder::names::ignored_file;
use crate::trigger::drop_folder::template::Template;
use crate::workflow::trigger::{Afterwards, Batch, By, Dedupe, Drop, Existing, Order, Symlinks};

/// What `mill.drop` takes.
pub(super) const DROP: Class = Class {
    name: "tidemill.Drop",
    word: "mill.drop",
    doc: "What `mill.drop` takes.",
    fields: &[
        field(
            "glob",
            "string",
            "pattern relative to the inbox: `*` within a folder, `**` across folders, `{a,b}`, `[0-9]`; `{case}` captures a \
             part of the path, which becomes `run.params.case`",
        ),
        field(
            "settle",
            "string|number?",
            "How long a file must be quiet; `settle` under [watch] without. 0 is allowed.",
        ),
        field(
            "min_size",
            "string|integer?",
            "A file with fewer bytes is waited for; 1 without, so that empty files are.",
        ),
        field("max_size", "string|integer?", "A file with more bytes is left where it is."),
        field(
            "ready_when",
            "string?",
            "Name of the file that says that another is complete: `{name}.done`, `{stem}.ok`.",
        ),
        field(
            "params_from",
            "string?",
            "Name of the JSON file whose values become `run.params`: `{stem}.json`. It is waited for, and is no input.",
        ),
        field("batch", "tidemill.Batch?", "Which files make one run together."),
        field(
            "existing",
            "\"process\"|\"ignore\"|\"since_last_run\"?",
            "Files that stand there when watching starts: they are taken (without), left until they change, or left only \
             the first time.",
        ),
        field(
            "dedupe",
            "\"none\"|\"path\"|\"content\"|\"path+content\"?",
            "What makes a file the same as one of a run that succeeded or works: it makes no run then. `none` without.",
        ),
        field("window", "string|number?", "How far back `dedupe` looks; as far as the history goes without."),
        field(
            "order",
            "\"arrival\"|\"name\"|\"mtime\"?",
            "In which order files that are complete at once are taken: `arrival` without.",
        ),
        field(
            "on_success",
            "tidemill.Afterwards?",
            "Where a file goes when its runs succeeded: mill.move, mill.keep, mill.delete; `processed/` without.",
        ),
        field(
            "on_failure",
            "tidemill.Afterwards?",
            "Where it goes when not, with the reason beside it; `failed/` without.",
        ),
        field(
            "symlinks",
            "\"ignore\"|\"inside\"?",
            "`inside` follows links to files in the inbox or in a folder of `links_to` under [watch]; none are followed \
             without.",
        ),
    ],
};

/// What `batch` takes.
pub(super) const BATCH: Class = Class {
    name: "tidemill.Batch",
    word: "batch",
    doc: "Which files make one run together, and when all of them are there.",
    fields: &[
        field(
            "by",
            "string",
            "what its files have in common: \"folder\", \"stem\", or a pattern of names whose captures count: \
             `{customer}-*.csv`",
        ),
        field("require", "string[]?", "Globs of names; each must have a file."),
        field("quiet", "string|number?", "How long nothing of it may change; what `settle` says without."),
        field("max", "integer?", "So many files go at once, without further waiting."),
        field(
            "timeout",
            "string|number?",
            "After so long without a change one that is not complete is given up, and stays where it is.",
        ),
    ],
};

/// `mill.drop { ... }`
pub(super) fn drop(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let host = Host::of(lua)?;
    host.loading("mill.drop")?;
    let place = host.call_site(lua, "drop", &arguments).argument(0);
    let value = arguments.into_iter().next().unwrap_or(Value::Nil);
    let fields = Fields::read(&host, value, place, &DROP);
    let drop = fields.map_or_else(|| Drop::new(""), |fields| read(&fields));
    lua.pack(Thing::Drop(Box::new(drop)))
}

/// `mill.move(folder)`
pub(super) fn move_into(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let host = Host::of(lua)?;
    host.loading("mill.move")?;
    let place = host.call_site(lua, "move", &arguments).argument(0);
    let value = arguments.into_iter().next().unwrap_or(Value::Nil);
    // Where it is no text, something of the right kind stands in for it.
    let folder = value::text(&host, &place, "mill.move", &value);
    lua.pack(Thing::Afterwards(folder.map_or(Afterwards::Keep, Afterwards::Move)))
}

/// `mill.keep()`
pub(super) fn keep(lua: &Lua, _: MultiValue) -> mlua::Result<Value> {
    Host::of(lua)?.loading("mill.keep")?;
    lua.pack(Thing::Afterwards(Afterwards::Keep))
}

/// `mill.delete()`
pub(super) fn delete(lua: &Lua, _: MultiValue) -> mlua::Result<Value> {
    Host::of(lua)?.loading("mill.delete")?;
    lua.pack(Thing::Afterwards(Afterwards::Delete))
}

fn read(fields: &Fields<'_>) -> Drop {
    let glob = fields.with("glob", glob);
    let mut captured = glob.as_ref().map(|glob| glob.names().to_vec()).unwrap_or_default();
    let batch = fields.with("batch", |host, place, _, value| batch(host, place, value, &mut captured));
    let then = |name: &str| {
        let knows_glob = glob.is_some();
        fields.with(name, |host, place, path, value| {
            afterwards(host, place, path, value, &captured, knows_glob)
        })
    };
    let (on_success, on_failure) = (then("on_success"), then("on_failure"));
    let dedupe = fields.with("dedupe", |host, place, path, value| {
        value::word(host, place, path, value, CODE, &Dedupe::ALL, Dedupe::as_str)
    });
    let window = fields.with("window", value::duration);
    if window.is_some() && matches!(dedupe, None | Some(Dedupe::None)) && fields.are_of(&DROP) {
        fields.with("window", |host, place, path, _| {
            let message = format!("`{path}` says how far back `dedupe` looks, and `dedupe` is `none`");
            let help = "say what makes two files the same: dedupe = \"content\"";
            value::bad::<()>(host, place, CODE, message, help)
        });
    }
    let min_size = fields.with("min_size", value::size);
    let max_size = fields.with("max_size", value::size);
    if let (least, Some(most)) = (min_size.unwrap_or(Drop::MIN_SIZE), max_size)
        && most < least
    {
        fields.with("max_size", |host, place, path, _| {
            let message = format!("`{path}` is {most} bytes and `min_size` {least}: no file fits");
            value::bad::<()>(host, place, CODE, message, "raise `max_size`, or leave it out")
        });
    }
    Drop {
        glob: glob.map(|glob| glob.as_str().to_owned()).unwrap_or_default(),
        settle: fields.with("settle", value::duration),
        min_size: min_size.unwrap_or(Drop::MIN_SIZE),
        max_size,
        ready_when: fields.with("ready_when", naming),
        params_from: fields.with("params_from", naming),
        batch,
        existing: fields
            .with("existing", |host, place, path, value| {
                value::word(host, place, path, value, CODE, &Existing::ALL, Existing::as_str)
            })
            .unwrap_or_default(),
        dedupe: dedupe.unwrap_or_default(),
        window,
        order: fields
            .with("order", |host, place, path, value| {
                value::word(host, place, path, value, CODE, &Order::ALL, Order::as_str)
            })
            .unwrap_or_default(),
        on_success,
        on_failure,
        symlinks: fields
            .with("symlinks", |host, place, path, value| {
                value::word(host, place, path, value, CODE, &Symlinks::ALL, Symlinks::as_str)
            })
            .unwrap_or_default(),
    }
}

/// The code of an option that cannot be.
const CODE: &str = "script::bad_drop";

fn glob(host: &Host, place: &Place, path: &str, value: &Value) -> Option<Glob> {
    let text = value::text(host, place, path, value)?;
    let help = "a glob is relative to the inbox: `energy/*.csv`, `**/*.{png,jpg}`, `contracts/{case}/*`";
    let shown = value::shorten(&text);
    let why = match Glob::parse(&text) {
        Err(why) => why,
        Ok(_) if text.trim().is_empty() => "it is empty".into(),
        Ok(_) if text.starts_with('/') => "it is absolute".into(),
        Ok(_) if text.split('/').any(|part| part == "..") => "it leaves the inbox".into(),
        Ok(glob) => return Some(glob),
    };
    let message = format!("`{shown}` is not a glob for the inbox: {why}");
    value::bad(host, place, "script::bad_glob", message, help)
}

/// A glob of names in one folder.
fn name_glob(host: &Host, place: &Place, path: &str, value: &Value) -> Option<Glob> {
    let text = value::text(host, place, path, value)?;
    let why = match Glob::parse(&text) {
        Err(why) => why,
        Ok(_) if text.trim().is_empty() => "it is empty".into(),
        Ok(_) if text.contains('/') => "it has a `/`, and names are looked at".into(),
        Ok(glob) => return Some(glob),
    };
    let message = format!("`{}` is not a glob of names: {why}", value::shorten(&text));
    value::bad(host, place, "script::bad_glob", message, "write it like `meta.json` or `*.pdf`")
}

fn naming(host: &Host, place: &Place, path: &str, value: &Value) -> Option<String> {
    let text = value::text(host, place, path, value)?;
    let example = text.replace("{name}", "x.csv").replace("{stem}", "x");
    let why = match (Naming::parse(&text), ignored_file(example.as_ref())) {
        (Err(why), _) => why,
        (Ok(_), Some(rule)) => {
            format!("a file of this name is ignored, it is {} (rule `{}`)", rule.what, rule.name)
        }
        (Ok(_), None) => return Some(text),
    };
    let message = format!("`{path}` cannot be `{}`: {why}", value::shorten(&text));
    let help = "it names a file in the same folder: `{name}.done` beside `a.csv` is `a.csv.done`, `{stem}.json` is `a.json`";
    value::bad(host, place, CODE, message, help)
}

fn batch(host: &Host, place: &Place, value: &Value, captured: &mut Vec<String>) -> Option<Batch> {
    let fields = Fields::read(host, value.clone(), place.clone(), &BATCH)?;
    let by = fields.with("by", |host, place, path, value| by(host, place, path, value, captured))?;
    let require = fields.list("require").into_iter().enumerate().filter_map(|(index, (place, value))| {
        let glob = name_glob(host, &place, &format!("batch.require[{}]", index + 1), &value)?;
        Some(glob.as_str().to_owned())
    });
    let require = require.collect();
    let max = fields.with("max", |host, place, path, value| {
        let count = value::count(host, place, path, value)?;
        match usize::try_from(count) {
            Ok(count) if count > 0 => Some(count),
            _ => {
                value::bad(host, place, CODE, format!("`{path}` is {count}"), "a batch has at least one file")
            }
        }
    });
    Some(Batch {
        by,
        require,
        quiet: fields.with("quiet", value::duration),
        max,
        timeout: fields.with("timeout", value::duration),
    })
}

fn by(host: &Host, place: &Place, path: &str, value: &Value, captured: &mut Vec<String>) -> Option<By> {
    let text = value::text(host, place, path, value)?;
    match text.as_str() {
        "folder" => return Some(By::Folder),
        "stem" => return Some(By::Stem),
        _ => {}
    }
    if !text.contains('{') {
        let message = format!("`{path}` cannot be `{}`", value::shorten(&text));
        let help = "it is \"folder\", \"stem\", or a pattern of names that captures: `{customer}-*.csv`";
        return value::bad(host, place, CODE, message, help);
    }
    let glob = name_glob(host, place, path, value)?;
    if let Some(twice) = glob.names().iter().find(|name| captured.contains(name)) {
        let message = format!("`{path}` captures `{twice}`, and so does the glob");
        return value::bad(host, place, CODE, message, "give one of them another name");
    }
    if glob.names().is_empty() {
        let message = format!("`{path}` captures nothing, so that all files would be one batch");
        return value::bad(
            host,
            place,
            CODE,
            message,
            "capture what they have in common: `{customer}-*.csv`",
        );
    }
    captured.extend_from_slice(glob.names());
    Some(By::Pattern(text))
}

fn afterwards(
    host: &Host,
    place: &Place,
    path: &str,
    value: &Value,
    captured: &[String],
    knows_glob: bool,
) -> Option<Afterwards> {
    let Some(Thing::Afterwards(afterwards)) = Thing::of(value) else {
        return value::wrong(host, place, path, "mill.move \"FOLDER\", mill.keep() or mill.delete()", value);
    };
    let Afterwards::Move(folder) = &afterwards else {
        return Some(afterwards);
    };
    let folders = &host.project().config.folders;
    let inbox = &folders.inbox;
    let why = match Template::parse(folder, captured) {
        // What it captures is not known where the glob is none.
        Err(_) if !knows_glob => return None,
        Err(why) => why,
        Ok(template) if inbox.is_relative() && template.may_lie_in(inbox) => {
            "it lies in the inbox, and its files would be taken as dropped".to_owned()
        }
        Ok(template) if template.may_lie_in(&folders.workflows) => {
            "scripts lie there, and what is dropped would become one".to_owned()
        }
        Ok(_) => return Some(afterwards),
    };
    let message = format!("files cannot go to `{}`: {why}", value::shorten(folder));
    let help = "name a folder of the project outside of the inbox: mill.move \"archive\", mill.move \"archive/{case}\"";
    value::bad(host, place, "script::bad_path", message, help)
}
