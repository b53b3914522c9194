//! `mill.notify { ... }`: who is told what becomes of runs.

use mlua::{Lua, MultiValue, Value};
use reqwest::Url;

use super::content::url::CREDENTIALS;
use super::objects::Thing;
use super::{Class, advice, field, webhook};
use crate::diagnostic::nearest;
use crate::script::fields::Fields;
use crate::script::host::Host;
use crate::script::place::Place;
use crate::script::value;
use crate::workflow::notify::{Address, Moment, Notify};

/// What `mill.notify` takes.
pub(super) const NOTIFY: Class = Class {
    name: "tidemill.Notify",
    word: "mill.notify",
    doc: "What `mill.notify` takes.",
    fields: &[
        field(
            "url",
            "string|tidemill.Secret",
            "an `https://` address, or a mill.secret where it is a key itself",
        ),
        field(
            "events",
            "string[]?",
            "Moments: `run.queued`, `run.started`, `run.succeeded`, `run.rejected`, `run.denied`, `run.exhausted`, \
             `run.failed`, `run.cancelled`. In `notify` all six ends without; `on_success` and `on_failure` say it \
             themselves.",
        ),
        field("secret", "tidemill.Secret?", "Signs the messages as Standard Webhooks are signed."),
    ],
};

/// What `mill.notify` gives.
#[derive(Debug, Clone)]
pub(in crate::script) struct Declared {
    /// Without events: where it stands in the workflow says them.
    notify: Notify,
    /// What `events` says.
    events: Option<Vec<Moment>>,
}

/// Reads it; what is wrong is noted, and something of the right kind stands in for it.
pub(super) fn notify(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let host = Host::of(lua)?;
    host.loading("mill.notify")?;
    let place = host.call_site(lua, "notify", &arguments).argument(0);
    let value = arguments.into_iter().next().unwrap_or(Value::Nil);
    let fields = Fields::read(&host, value, place, &NOTIFY);
    let url = fields.as_ref().and_then(|fields| fields.with("url", address));
    let notify = Notify {
        url: url.unwrap_or(Address::Url(String::new())),
        secret: fields.as_ref().and_then(|fields| fields.with("secret", webhook::secret)),
        events: Vec::new(),
    };
    let events = fields.as_ref().and_then(|fields| fields.with("events", moments));
    lua.pack(Thing::Notify(Declared { notify, events }))
}

/// The targets of a workflow: its `notify`, `on_success` and `on_failure`.
pub(in crate::script) fn targets(host: &Host, fields: &Fields<'_>) -> Vec<Notify> {
    let mut targets = Vec::new();
    let ends = [&[Moment::Succeeded][..], &Moment::BAD_ENDS].concat();
    for (name, events, is_open) in [
        ("notify", ends, true),
        ("on_success", vec![Moment::Succeeded], false),
        ("on_failure", Moment::BAD_ENDS.to_vec(), false),
    ] {
        let found = fields.with(name, |host, place, path, value| match value {
            Value::Table(_) => value::list(host, place, path, value),
            one => Some(vec![(place.clone(), one.clone())]),
        });
        for (place, value) in found.unwrap_or_default() {
            let Some(Thing::Notify(declared)) = Thing::of(&value) else {
                value::wrong::<()>(
                    host,
                    &place,
                    name,
                    "a mill.notify { url = ... }, or a list of them",
                    &value,
                );
                continue;
            };
            if declared.events.is_some() && !is_open {
                let message = format!("`{name}` says which events, and its `mill.notify` does as well");
                let help = "leave `events` out, or move it to `notify = { mill.notify { ... } }`";
                value::bad::<()>(host, &place, "script::bad_notify", message, help);
            }
            let said = declared.events.filter(|_| is_open);
            targets.push(Notify { events: said.unwrap_or_else(|| events.clone()), ..declared.notify });
        }
    }
    targets
}

fn address(host: &Host, place: &Place, path: &str, value: &Value) -> Option<Address> {
    if let Some(Thing::Secret(name)) = Thing::of(value) {
        return Some(Address::Secret(name));
    }
    let Value::String(_) = value else {
        return value::wrong(host, place, path, "an address, or a mill.secret", value);
    };
    let text = value::text(host, place, path, value)?;
    let help = "write it like `https://hooks.example.org/tidemill`, or mill.secret \"NAME\" where it is a key itself";
    let message = match Url::parse(&text) {
        // The text may hold a key: what cannot be taken apart is not shown.
        Err(error) => format!("`{path}` is no address: {error}"),
        Ok(url) if url.password().is_some() || !url.username().is_empty() => {
            return value::bad(host, place, "script::secret_in_url", CREDENTIALS.to_owned(), help);
        }
        Ok(url) if !matches!(url.scheme(), "http" | "https") || !url.has_host() => {
            format!("`{path}` is neither http nor https")
        }
        Ok(url) => return Some(Address::Url(url.into())),
    };
    value::bad(host, place, "script::bad_notify", message, help)
}

fn moments(host: &Host, place: &Place, path: &str, value: &Value) -> Option<Vec<Moment>> {
    let items = value::list(host, place, path, value)?;
    if items.is_empty() {
        let help = "name one, or leave `events` out for all ends of a run";
        return value::bad(host, place, "script::bad_notify", format!("`{path}` is empty"), help);
    }
    let moments = items.iter().enumerate().filter_map(|(index, (place, value))| {
        let path = format!("{path}[{}]", index + 1);
        let text = value::text(host, place, &path, value)?;
        Moment::parse(&text).or_else(|| {
            let words = Moment::ALL.map(Moment::as_str);
            let message = format!("`{path}` is `{}`, which is no moment of a run", value::shorten(&text));
            let help = advice(nearest(&text, words), &words);
            value::bad(host, place, "script::bad_notify", message, &help)
        })
    });
    Some(moments.collect())
}
