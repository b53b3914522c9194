//! `tidemill`: workflows and their parts.

use mlua::{Lua, MultiValue, Value};

use super::notify::{NOTIFY, notify};
use super::objects::{CONTENT, Thing};
use super::{Entry, Module, content, drop, schedule, webhook};
use crate::diagnostic::Diagnostic;
use crate::script::declare::{agent, image, limits, network, packages, queueing, workflow};
use crate::script::host::Host;
use crate::script::published;
use crate::script::time;
use crate::script::value;
use crate::script::view;

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
            doc: "Starts a run for every file, or batch of files, dropped into the inbox under a matching path.",
            run: drop::drop,
        },
        Entry {
            name: "move",
            signature: "(folder: string): tidemill.Afterwards",
            doc: "For `on_success` and `on_failure` of a drop: into this folder of the project, which may name captures \
                  of the glob: `archive/{case}`.",
            run: drop::move_into,
        },
        Entry {
            name: "keep",
            signature: "(): tidemill.Afterwards",
            doc: "For `on_success` and `on_failure` of a drop: the file stays in the inbox, and runs again when it has \
                  changed.",
            run: drop::keep,
        },
        Entry {
            name: "delete",
            signature: "(): tidemill.Afterwards",
            doc: "For `on_success` and `on_failure` of a drop: the file is removed.",
            run: drop::delete,
        },
        Entry {
            name: "schedule",
            signature: "(options: tidemill.Schedule): tidemill.Trigger",
            doc: "Starts a run at every instant of a cron pattern, an interval or a list of times.",
            run: schedule::schedule,
        },
        Entry {
            name: "webhook",
            signature: "(options: tidemill.Webhook): tidemill.Trigger",
            doc: "Starts a run for every signed request to a path.",
            run: webhook::webhook,
        },
        Entry {
            name: "notify",
            signature: "(options: tidemill.Notify): tidemill.Notification",
            doc: "Tells a server what becomes of runs, for `notify`, `on_success` and `on_failure`.",
            run: notify,
        },
        Entry {
            name: "image",
            signature: "(image: string|tidemill.ImageOptions): tidemill.Image",
            doc: "The container image: a tag or digest, or how it is made.",
            run: declare_image,
        },
        Entry {
            name: "input",
            signature: "(options?: tidemill.Rights): tidemill.Content",
            doc: "The file that was dropped. Under a path ending in `/` it is placed there as `input` with its \
                  extension.",
            run: content::input,
        },
        Entry {
            name: "file",
            signature: "(path: string, options?: tidemill.Rights): tidemill.Content",
            doc: "A file of the project: for the manifest, or as `prompt` or `instructions`.",
            run: content::file,
        },
        Entry {
            name: "dir",
            signature: "(path: string, options?: tidemill.Dir): tidemill.Content",
            doc: "A folder of the project, for a manifest path ending in `/`.",
            run: content::dir,
        },
        Entry {
            name: "text",
            signature: "(text: string, options?: tidemill.Rights): tidemill.Content",
            doc: "Text as a file.",
            run: content::text,
        },
        Entry {
            name: "bytes",
            signature: "(bytes: string, options?: tidemill.Rights): tidemill.Content",
            doc: "Bytes as a file; they need not be text.",
            run: content::bytes,
        },
        Entry {
            name: "url",
            signature: "(url: string, options: tidemill.Url): tidemill.Content",
            doc: "A file from the network, fetched by the host when a run starts and kept by its hash.",
            run: content::url::url,
        },
        Entry {
            name: "git",
            signature: "(repository: string, options: tidemill.Git): tidemill.Content",
            doc: "A repository at one commit, cloned on the host: `https://`, `ssh://` or `file:///`, or a folder of \
                  the project.",
            run: content::git::git,
        },
        Entry {
            name: "artifacts",
            signature: "(workflow: string|tidemill.Wanted, options?: tidemill.Artifacts): tidemill.Content|tidemill.Published[]",
            doc: "What the last run of a workflow published, checked against the hashes in its log. With a table, in a \
                  manifest function: the list of all artifacts that fit, oldest first, to place or to read.",
            run: content::artifacts::artifacts,
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
        &queueing::RETRY,
        &drop::DROP,
        &drop::BATCH,
        &schedule::SCHEDULE,
        &webhook::WEBHOOK,
        &webhook::HMAC,
        &NOTIFY,
        &image::IMAGE,
        &packages::PACKAGES,
        &content::RIGHTS,
        &content::DIR,
        &content::url::URL,
        &content::git::GIT,
        &content::artifacts::ARTIFACTS,
        &content::published::WANTED,
        &CONTENT,
        &view::RUN,
        &time::TIME,
        &view::INPUT,
        &view::ARTIFACT,
        &published::PUBLISHED,
    ],
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

fn declare_image(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let host = Host::of(lua)?;
    host.loading("mill.image")?;
    let place = host.call_site(lua, "image", &arguments).argument(0);
    let value = arguments.into_iter().next().unwrap_or(Value::Nil);
    let image = image::read(&host, place, value);
    lua.pack(Thing::Image(image.unwrap_or_default()))
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
