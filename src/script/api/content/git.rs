//! `mill.git`: a repository at one commit.

use mlua::{Lua, MultiValue, Value};
use reqwest::Url;

use super::url::CREDENTIALS;
use super::{ACCESS, IGNORE, MODE, given, rights, rules};
use crate::script::api::objects::{Rights, Thing};
use crate::script::api::{Class, Field};
use crate::script::declare::manifest;
use crate::script::fields::Fields;
use crate::script::host::Host;
use crate::script::place::Place;
use crate::script::{files, value};
use crate::workflow::manifest::{Checkout, Content, Repository};

pub(in crate::script::api) const GIT: Class = Class {
    name: "tidemill.Git",
    word: "mill.git",
    doc: "What `mill.git` takes besides the repository.",
    fields: &[
        Field { name: "ref", kind: "string", doc: "a branch, a tag or a full commit hash" },
        Field {
            name: "path",
            kind: "string?",
            doc: "The file or folder of it that is wanted; all of it without.",
        },
        IGNORE,
        Field {
            name: "history",
            kind: "boolean?",
            doc: "Whether `.git` comes along; best with `access = \"rw\"`.",
        },
        Field { name: "submodules", kind: "boolean?", doc: "Whether its submodules come along." },
        ACCESS,
        MODE,
    ],
};

/// `mill.git(repository, options)`
pub(in crate::script::api) fn git(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let host = Host::of(lua)?;
    host.filling("mill.git")?;
    let site = host.call_site(lua, "git", &arguments);
    let mut arguments = arguments.into_iter();
    let value = arguments.next().unwrap_or(Value::Nil);
    let repository = repository(&host, &site.argument(0), &value);
    let fields = Fields::read(&host, given(lua, arguments.next())?, site.argument(1), &GIT);
    let mut checkout = Checkout {
        repository: repository.unwrap_or(Repository::Folder(String::new())),
        reference: String::new(),
        path: None,
        ignore: Vec::new(),
        history: false,
        submodules: false,
    };
    let mut granted = Rights::default();
    if let Some(fields) = fields {
        checkout.reference = fields.with("ref", reference).unwrap_or_default();
        checkout.path = fields.with("path", inner_path);
        checkout.ignore = fields.with("ignore", rules).unwrap_or_default();
        checkout.history = fields.flag("history").unwrap_or_default();
        checkout.submodules = fields.flag("submodules").unwrap_or_default();
        if checkout.history && checkout.path.is_some() {
            let message = "`history` is of a whole repository, and `path` names a part of it".to_owned();
            let help = "leave one of them out";
            value::bad::<()>(&host, &fields.at("history"), "script::wrong_type", message, help);
        }
        granted = rights(&host, &fields);
    }
    lua.pack(Thing::Content(Content::Git(checkout), granted))
}

fn repository(host: &Host, place: &Place, value: &Value) -> Option<Repository> {
    let text = value::text(host, place, "mill.git", value)?;
    let shown = value::shorten(&text);
    let bad = |message: String, help: &str| value::bad(host, place, "script::bad_url", message, help);
    let url = Url::parse(&text).ok().filter(|_| text.contains("://"));
    if holds_secret(&text, url.as_ref()) {
        let help = "a script is no place for secrets: let git on this machine know them (a credential helper, an SSH \
                    key), and write the address without";
        return value::bad(host, place, "script::secret_in_url", CREDENTIALS.to_owned(), help);
    }
    if text.contains("://") {
        let help = "write `https://`, `ssh://` or `file:///`, or a folder of the project";
        return match url.as_ref().map(|url| unfit(url, &text)) {
            None => bad(format!("`{shown}` is no address"), help),
            Some(None) => Some(Repository::Url(text)),
            Some(Some(why)) => bad(format!("`{shown}` {why}"), help),
        };
    }
    if let Some((host, path)) = text.split_once(':').filter(|(host, _)| !host.contains('/')) {
        let is_address = host.contains('@') && !path.starts_with(':');
        let address =
            if is_address { format!("ssh://{host}/{path}") } else { "ssh://USER@HOST/PATH".to_owned() };
        let help = format!("write `{address}`, or `https://`, `file:///`, or a folder of the project");
        return bad(format!("`{shown}` is no address with a scheme"), &help);
    }
    if text.starts_with('/') {
        let help = format!("write `file://{text}`, or a folder of the project");
        return bad(format!("`{shown}` is an absolute path"), &help);
    }
    manifest::project_path(host, place, "mill.git", value, manifest::Wanted::Folder).map(Repository::Folder)
}

/// Whether there is, or may be, more than a user's name before the host. Such an address is in no message.
fn holds_secret(text: &str, url: Option<&Url>) -> bool {
    match url {
        Some(url) if url.scheme() == "ssh" => url.password().is_some(),
        Some(url) => url.password().is_some() || !url.username().is_empty(),
        // As `user:password@host/path`; `user@host:path` has none.
        None => text.rsplit_once('@').is_some_and(|(before, _)| before.contains(':')),
    }
}

/// Why git is not to be asked for this address; a fragment.
fn unfit(url: &Url, text: &str) -> Option<&'static str> {
    let option = |part: &str| part.starts_with('-') || part.starts_with("%2d") || part.starts_with("%2D");
    if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Some("holds a blank or a control character");
    }
    match url.scheme() {
        // It would reach ssh as an option.
        "ssh" if option(url.username()) || url.host_str().is_none_or(option) => {
            Some("has a host or user that begins with `-`")
        }
        "file" if !text.starts_with("file:///") || text.contains('%') => {
            Some("is no plain absolute path behind `file://`")
        }
        "https" | "ssh" | "file" => None,
        "http" => Some("would be read over a line that others can change"),
        _ => Some("has a scheme that is not taken"),
    }
}

fn reference(host: &Host, place: &Place, path: &str, value: &Value) -> Option<String> {
    let text = value::text(host, place, path, value)?;
    let odd = |c: char| c.is_control() || c.is_whitespace() || "~^:?*[\\".contains(c);
    let why = match text.as_str() {
        "" => "is empty",
        text if text.starts_with('-') => "begins with `-`",
        text if text.len() > 255 => "is longer than 255 bytes",
        text if text.contains(odd) || text.contains("..") || text.contains("@{") => {
            "holds what no name of a branch or tag holds"
        }
        _ => return Some(text),
    };
    let message = format!("the ref `{}` {why}", value::shorten(&text));
    value::bad(host, place, "script::bad_ref", message, "name a branch, a tag or a full commit hash")
}

/// A path inside a repository.
fn inner_path(host: &Host, place: &Place, path: &str, value: &Value) -> Option<String> {
    let text = value::text(host, place, path, value)?;
    let inside = files::normal(&text).and_then(|path| {
        if path.split('/').any(|part| part == ".git") {
            return Err("is of git itself; `history = true` brings it along".to_owned());
        }
        Ok(path)
    });
    inside.map_or_else(
        |why| {
            let why = why.replace("project's folder", "repository");
            let message = format!("`{}` {why}", value::shorten(&text));
            value::bad(
                host,
                place,
                "script::bad_path",
                message,
                "the path is relative to the repository's root",
            )
        },
        Some,
    )
}
