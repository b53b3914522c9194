//! `mill.url`: a file from the network.

use mlua::{Lua, MultiValue, Value};
use reqwest::Url;

use super::{ACCESS, MODE, given, rights};
use crate::event::id::Digest;
use crate::script::api::objects::{Rights, Thing};
use crate::script::api::{Class, Field};
use crate::script::fields::Fields;
use crate::script::host::Host;
use crate::script::place::Place;
use crate::script::value;
use crate::workflow::manifest::{Content, Download};

pub(in crate::script::api) const URL: Class = Class {
    name: "tidemill.Url",
    word: "mill.url",
    doc: "What `mill.url` takes besides the address.",
    fields: &[
        Field {
            name: "sha256",
            kind: "string",
            doc: "hash of the content, 64 hexadecimal digits: `curl -sSL URL | sha256sum` prints it",
        },
        Field {
            name: "max",
            kind: "string|integer?",
            doc: "The largest size that is fetched: `1GiB` without.",
        },
        ACCESS,
        MODE,
    ],
};

/// What is wrong with an address that nobody may read.
pub(in crate::script::api) const CREDENTIALS: &str = "the address holds a user name or a password";

/// `mill.url(url, options)`
pub(in crate::script::api) fn url(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let host = Host::of(lua)?;
    host.filling("mill.url")?;
    let site = host.call_site(lua, "url", &arguments);
    let mut arguments = arguments.into_iter();
    let value = arguments.next().unwrap_or(Value::Nil);
    let address = address(&host, &site.argument(0), &value);
    let fields = Fields::read(&host, given(lua, arguments.next())?, site.argument(1), &URL);
    let mut download =
        Download { url: address.unwrap_or_default(), sha256: Digest::of(""), max: Download::MAX };
    let mut granted = Rights::default();
    if let Some(fields) = fields {
        download.sha256 = fields.with("sha256", sha256).unwrap_or(download.sha256);
        download.max = fields.with("max", value::size).unwrap_or(Download::MAX);
        if download.max == 0 {
            let message = "`max` is 0, so nothing could be fetched".to_owned();
            value::bad::<()>(&host, &fields.at("max"), "script::bad_limit", message, "write it like `20MB`");
        }
        granted = rights(&host, &fields);
    }
    lua.pack(Thing::Content(Content::Url(download), granted))
}

fn address(host: &Host, place: &Place, value: &Value) -> Option<String> {
    let text = value::text(host, place, "mill.url", value)?;
    let shown = value::shorten(&text);
    let help = "write the whole address of the file, like `https://example.org/data.csv`";
    let message = match Url::parse(&text) {
        Err(_) if text.contains('@') => "the address cannot be read".to_owned(),
        Err(error) => format!("`{shown}` is no address: {error}"),
        Ok(url) if url.password().is_some() || !url.username().is_empty() => {
            let help = "a script is no place for secrets, and the sandbox gets none: name a file that needs no login";
            return value::bad(host, place, "script::secret_in_url", CREDENTIALS.to_owned(), help);
        }
        Ok(url) if !matches!(url.scheme(), "http" | "https") => {
            format!("`{shown}` is neither http nor https")
        }
        Ok(_) if text.chars().any(|c| c.is_control() || c.is_whitespace()) => {
            format!("`{shown}` holds a blank or a control character")
        }
        Ok(_) => return Some(text),
    };
    value::bad(host, place, "script::bad_url", message, help)
}

fn sha256(host: &Host, place: &Place, path: &str, value: &Value) -> Option<Digest> {
    let text = value::text(host, place, path, value)?;
    Digest::parse(&text.to_ascii_lowercase()).or_else(|| {
        let message = format!("`{}` is no SHA-256", value::shorten(&text));
        let help = "it has 64 hexadecimal digits: `curl -sSL URL | sha256sum` prints it";
        value::bad(host, place, "script::bad_hash", message, help)
    })
}
