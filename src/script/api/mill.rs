//! `tidemill`: workflows and their parts.

use mlua::{Lua, MultiValue, Value};

use super::objects::{CONTENT, Thing};
use super::{Class, Entry, Field, Module};
use crate::diagnostic::Diagnostic;
use crate::script::declare::{agent, limits, manifest, network, workflow};
use crate::script::fields::Fields;
use crate::script::host::Host;
use crate::script::place::Place;
use crate::script::raised::Raised;
use crate::script::view;
use crate::script::{files, value};
use crate::workflow::image::Image;
use crate::workflow::manifest::{Access, Content};
use crate::workflow::trigger::Drop;

/// The module.
pub(super) const MODULE: Module = Module {
    name: "tidemill",
    local: "mill",
    doc: "Workflows: what starts them, where they run, what they are given and what must come out.",
    entries: &[
        Entry {
            name: "workflow",
            signature: "(options: tidemill.Workflow): tidemill.Declared",
            doc: "Declares the workflow; the script returns it.",
            run: declare,
        },
        Entry {
            name: "drop",
            signature: "(options: tidemill.Drop): tidemill.Trigger",
            doc: "Starts a run for every file dropped into the inbox under a matching path.",
            run: drop,
        },
        Entry {
            name: "image",
            signature: "(image: string|tidemill.Build): tidemill.Image",
            doc: "The container image: a tag, or a folder with a Dockerfile.",
            run: image,
        },
        Entry {
            name: "input",
            signature: "(options?: tidemill.Access): tidemill.Content",
            doc: "The file that was dropped. Under a path ending in `/` it is placed there as `input` with its \
                  extension.",
            run: input,
        },
        Entry {
            name: "file",
            signature: "(path: string, options?: tidemill.Access): tidemill.Content",
            doc: "A file of the project: for the manifest, or as `prompt` or `instructions`.",
            run: file,
        },
        Entry {
            name: "dir",
            signature: "(path: string, options?: tidemill.Access): tidemill.Content",
            doc: "A folder of the project, for a manifest path ending in `/`.",
            run: dir,
        },
        Entry {
            name: "text",
            signature: "(text: string, options?: tidemill.Access): tidemill.Content",
            doc: "Text as a file.",
            run: text,
        },
        Entry {
            name: "secret",
            signature: "(name: string, options?: tidemill.Bound): tidemill.Secret",
            doc: "A handle on an environment variable. Its value never is in Lua, a prompt, a log or the sandbox. \
                  Bound to a host, it goes into `network.secrets`: the sandbox has a placeholder, which becomes the \
                  value on its way to that host.",
            run: secret,
        },
    ],
    classes: &[
        &workflow::WORKFLOW,
        &agent::AGENT,
        &limits::LIMITS,
        &network::NETWORK,
        &network::BOUND,
        &workflow::REPAIR,
        &DROP,
        &BUILD,
        &ACCESS,
        &CONTENT,
        &view::RUN,
        &view::INPUT,
        &view::ARTIFACT,
    ],
};

const DROP: Class = Class {
    name: "tidemill.Drop",
    word: "mill.drop",
    doc: "What `mill.drop` takes.",
    fields: &[Field {
        name: "glob",
        kind: "string",
        doc: "pattern relative to the inbox: `*` within a folder, `**` across folders, `{a,b}`, `[0-9]`",
    }],
};

const BUILD: Class = Class {
    name: "tidemill.Build",
    word: "mill.image",
    doc: "An image that is built.",
    fields: &[Field {
        name: "build",
        kind: "string",
        doc: "a folder of the project with a Dockerfile, e.g. `images/python-data`",
    }],
};

const ACCESS: Class = Class {
    name: "tidemill.Access",
    word: "options",
    doc: "What the agent may do with an entry of the manifest.",
    fields: &[Field {
        name: "access",
        kind: "\"ro\"|\"rw\"?",
        doc: "`rw` lets the agent change it; `ro` without.",
    }],
};

fn declare(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let host = Host::of(lua)?;
    host.loading("mill.workflow")?;
    let place = host.call_site(lua, "workflow", &arguments).argument(0);
    let value = arguments.into_iter().next().unwrap_or(Value::Nil);
    if host.declared().is_some() {
        let mistake =
            Diagnostic::new("script::second_workflow", "a script declares one workflow, and this is another");
        host.mistake(place.mark_name(mistake, "here").help("move it into a file of its own"));
    }
    host.declare(place.name("name"));
    match workflow::read(&host, value, place) {
        Some(workflow) => lua.pack(Thing::Workflow(Box::new(workflow))),
        None => Ok(Value::Nil),
    }
}

fn drop(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let host = Host::of(lua)?;
    host.loading("mill.drop")?;
    let place = host.call_site(lua, "drop", &arguments).argument(0);
    let value = arguments.into_iter().next().unwrap_or(Value::Nil);
    let fields = Fields::read(&host, value, place, &DROP);
    let glob = fields.and_then(|fields| fields.with("glob", glob));
    lua.pack(Thing::Drop(Drop { glob: glob.unwrap_or_default() }))
}

fn glob(host: &Host, place: &Place, path: &str, value: &Value) -> Option<String> {
    let text = value::text(host, place, path, value)?;
    let help = "a glob is relative to the inbox: `energy/*.csv`, `**/*.{png,jpg}`";
    let shown = value::shorten(&text);
    let parsed = globset::GlobBuilder::new(&text).literal_separator(true).build();
    let why = match parsed {
        Err(error) => error.kind().to_string(),
        Ok(_) if text.trim().is_empty() => "it is empty".into(),
        Ok(_) if text.starts_with('/') => "it is absolute".into(),
        Ok(_) if text.split('/').any(|part| part == "..") => "it leaves the inbox".into(),
        Ok(_) => return Some(text),
    };
    let message = format!("`{shown}` is not a glob for the inbox: {why}");
    value::bad(host, place, "script::bad_glob", message, help)
}

fn image(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let host = Host::of(lua)?;
    host.loading("mill.image")?;
    let place = host.call_site(lua, "image", &arguments).argument(0);
    let value = arguments.into_iter().next().unwrap_or(Value::Nil);
    let image = match value {
        Value::String(_) => tag(&host, &place, &value).map(Image::Reference),
        other => Fields::read(&host, other, place, &BUILD)
            .and_then(|fields| fields.with("build", folder))
            .map(Image::Build),
    };
    lua.pack(Thing::Image(image.unwrap_or(Image::Reference(String::new()))))
}

fn tag(host: &Host, place: &Place, value: &Value) -> Option<String> {
    let text = value::text(host, place, "mill.image", value)?;
    let fits = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-/:@".contains(c));
    if fits {
        return Some(text);
    }
    let message = format!("`{}` is not the tag of an image", value::shorten(&text));
    let help = "write it like `python:3.12-slim`, or build one with mill.image { build = \"images/NAME\" }";
    value::bad(host, place, "script::bad_image", message, help)
}

fn folder(host: &Host, place: &Place, path: &str, value: &Value) -> Option<String> {
    let text = value::text(host, place, path, value)?;
    let shown = value::shorten(&text);
    let folder = match files::normal(&text) {
        Ok(folder) => folder,
        Err(why) => {
            let message = format!("`{shown}` {why}");
            return value::bad(host, place, "script::bad_path", message, "name a folder of the project");
        }
    };
    if host.files().is_pinned() {
        return Some(folder);
    }
    let help = format!("make {shown}/Dockerfile, or name an image that exists with mill.image \"TAG\"");
    let dockerfile = format!("{folder}/Dockerfile");
    let message = match host.files().path(&folder) {
        Err(why) => format!("the image folder `{shown}` {why}"),
        Ok(found) if !found.is_dir() => format!("the image folder `{shown}` is not a folder"),
        Ok(_) if !host.files().has(&dockerfile) => format!("the image folder `{shown}` has no Dockerfile"),
        Ok(_) => return Some(folder),
    };
    value::bad(host, place, "script::missing_file", message, &help)
}

fn access(host: &Host, place: &Place, value: Option<Value>) -> Access {
    let Some(value) = value.filter(|value| *value != Value::Nil) else {
        return Access::ReadOnly;
    };
    let access = Fields::read(host, value, place.clone(), &ACCESS).and_then(|fields| {
        fields.with("access", |host, place, path, value| {
            match value::text(host, place, path, value)?.as_str() {
                "ro" => Some(Access::ReadOnly),
                "rw" => Some(Access::ReadWrite),
                other => {
                    let message = format!("`access` is \"{}\"", value::shorten(other));
                    value::bad(host, place, "script::wrong_type", message, "it is \"ro\" or \"rw\"")
                }
            }
        })
    });
    access.unwrap_or_default()
}

fn input(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let host = Host::of(lua)?;
    host.loading("mill.input")?;
    let place = host.call_site(lua, "input", &arguments).argument(0);
    let access = access(&host, &place, arguments.into_iter().next());
    lua.pack(Thing::Content(Content::Input, access))
}

fn file(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let host = Host::of(lua)?;
    let site = host.call_site(lua, "file", &arguments);
    let mut arguments = arguments.into_iter();
    let value = arguments.next().unwrap_or(Value::Nil);
    if host.is_running() {
        // Only what was read when the script loaded: a run is pinned to it.
        let Value::String(path) = &value else {
            return Err(Raised::misuse("`mill.file` takes a path").word("file").into());
        };
        let path = files::normal(&path.to_string_lossy())
            .map_err(|why| Raised::misuse(format!("the path {why}")))?;
        return lua.pack(Thing::Content(Content::File(path), Access::ReadOnly));
    }
    let path = manifest::project_path(&host, &site.argument(0), "mill.file", &value, manifest::Wanted::File);
    let access = access(&host, &site.argument(1), arguments.next());
    lua.pack(Thing::Content(Content::File(path.unwrap_or_default()), access))
}

fn dir(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let host = Host::of(lua)?;
    host.loading("mill.dir")?;
    let site = host.call_site(lua, "dir", &arguments);
    let mut arguments = arguments.into_iter();
    let value = arguments.next().unwrap_or(Value::Nil);
    let path = manifest::project_path(&host, &site.argument(0), "mill.dir", &value, manifest::Wanted::Folder);
    let access = access(&host, &site.argument(1), arguments.next());
    lua.pack(Thing::Content(Content::Dir(path.unwrap_or_default()), access))
}

fn text(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let host = Host::of(lua)?;
    host.loading("mill.text")?;
    let site = host.call_site(lua, "text", &arguments);
    let mut arguments = arguments.into_iter();
    let value = arguments.next().unwrap_or(Value::Nil);
    let text = value::text(&host, &site.argument(0), "mill.text", &value);
    let access = access(&host, &site.argument(1), arguments.next());
    lua.pack(Thing::Content(Content::Text(text.unwrap_or_default()), access))
}

fn secret(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let host = Host::of(lua)?;
    let site = host.call_site(lua, "secret", &arguments);
    let place = site.argument(0);
    let mut arguments = arguments.into_iter();
    let value = arguments.next().unwrap_or(Value::Nil);
    let name = value::text(&host, &place, "mill.secret", &value).and_then(|name| {
        let fits = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if fits {
            return Some(name);
        }
        // The text may be the value itself, pasted by mistake: messages are stored, so it is not in one.
        let message = "`mill.secret` takes the name of an environment variable".to_owned();
        let help = "write mill.secret \"SHOP_TOKEN\" and set SHOP_TOKEN where tidemill runs";
        value::bad(&host, &place, "script::bad_secret", message, help)
    });
    let name = name.unwrap_or_default();
    match arguments.next() {
        None | Some(Value::Nil) => lua.pack(Thing::Secret(name)),
        Some(options) => {
            // What is wrong with it has been noted; a handle of the right kind makes no second mistake of it.
            let bound = network::bound(&host, site.argument(1), options, name);
            lua.pack(Thing::Credential(bound))
        }
    }
}
