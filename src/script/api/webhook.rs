//! `mill.webhook { ... }`: runs by requests from outside.

use mlua::{Lua, MultiValue, Value};

use super::objects::Thing;
use super::{Class, advice, field};
use crate::diagnostic::nearest;
use crate::script::fields::Fields;
use crate::script::host::Host;
use crate::script::place::Place;
use crate::script::value;
use crate::workflow::units::show_size;
use crate::workflow::webhook::{Scheme, Webhook};

/// What `mill.webhook` takes.
pub(super) const WEBHOOK: Class = Class {
    name: "tidemill.Webhook",
    word: "mill.webhook",
    doc: "What `mill.webhook` takes.",
    fields: &[
        field(
            "path",
            "string",
            "what stands behind `/hooks/`, unique in the project: `refunds`, `shop/orders`",
        ),
        field(
            "secret",
            "tidemill.Secret|tidemill.Secret[]",
            "a mill.secret that requests are signed with; two of them while it is changed",
        ),
        field(
            "scheme",
            "\"standard\"|\"github\"|\"stripe\"|\"slack\"|tidemill.Hmac?",
            "How requests are signed: `standard` (Standard Webhooks) without.",
        ),
        field(
            "max_body",
            "string|integer?",
            "The largest body that is taken: `1MB` without, `100MB` at most.",
        ),
        field(
            "rate",
            "number?",
            "Requests a second that are taken on average, 50 without; more are told to wait.",
        ),
    ],
};

/// `scheme = { hmac = "..." }`
pub(super) const HMAC: Class = Class {
    name: "tidemill.Hmac",
    word: "scheme",
    doc: "A signature of a sender's own: HMAC-SHA256 of the body, in hexadecimal or base64.",
    fields: &[field("hmac", "string", "name of the header with the signature, e.g. `X-Signature`")],
};

const LONGEST_PATH: usize = 128;
const MOST_SECRETS: usize = 4;
const HIGHEST_RATE: f64 = 10_000.0;

/// Reads it; what is wrong is noted, and something of the right kind stands in for it.
pub(super) fn webhook(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let host = Host::of(lua)?;
    host.loading("mill.webhook")?;
    let place = host.call_site(lua, "webhook", &arguments).argument(0);
    let value = arguments.into_iter().next().unwrap_or(Value::Nil);
    let mut webhook = Webhook {
        path: String::new(),
        secrets: Vec::new(),
        scheme: Scheme::default(),
        max_body: Webhook::MAX_BODY,
        rate: Webhook::RATE,
    };
    if let Some(fields) = Fields::read(&host, value, place, &WEBHOOK) {
        webhook.path = fields.with("path", path).unwrap_or_default();
        webhook.secrets = fields.with("secret", secrets).unwrap_or_default();
        webhook.scheme = fields.with("scheme", scheme).unwrap_or_default();
        webhook.max_body = fields.with("max_body", max_body).unwrap_or(Webhook::MAX_BODY);
        webhook.rate = fields.with("rate", rate).unwrap_or(Webhook::RATE);
    }
    lua.pack(Thing::Webhook(Box::new(webhook)))
}

fn path(host: &Host, place: &Place, path: &str, value: &Value) -> Option<String> {
    let text = value::text(host, place, path, value)?;
    let is_word = |word: &str| {
        !word.is_empty()
            && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_')
    };
    if text.len() <= LONGEST_PATH && text.split('/').all(is_word) {
        return Some(text);
    }
    let message = format!("`{}` cannot be the path of a webhook", value::shorten(&text));
    let help = "words of `a-z`, `0-9`, `-` and `_` with `/` between them: `refunds`, `shop/orders`";
    value::bad(host, place, "script::bad_webhook", message, help)
}

/// One secret, or a list of them.
fn secrets(host: &Host, place: &Place, path: &str, value: &Value) -> Option<Vec<String>> {
    if !matches!(value, Value::Table(_)) {
        return Some(vec![secret(host, place, path, value)?]);
    }
    let items = value::list(host, place, path, value)?;
    if items.is_empty() || items.len() > MOST_SECRETS {
        let message = format!("`{path}` holds {} secrets", items.len());
        let help = format!("one, or a new and an old one while it is changed; {MOST_SECRETS} at most");
        return value::bad(host, place, "script::bad_webhook", message, &help);
    }
    let named = items
        .iter()
        .enumerate()
        .filter_map(|(index, (place, value))| secret(host, place, &format!("{path}[{}]", index + 1), value));
    Some(named.collect())
}

/// The variable that a `mill.secret` names.
pub(super) fn secret(host: &Host, place: &Place, path: &str, value: &Value) -> Option<String> {
    if let Some(Thing::Secret(name)) = Thing::of(value) {
        return Some(name);
    }
    // The text may be the value itself, pasted by mistake: messages are stored, so it is not in one.
    let help = "write mill.secret \"NAME\" and set NAME where tidemill runs";
    value::bad(host, place, "script::bad_secret", format!("`{path}` is not a mill.secret"), help)
}

fn scheme(host: &Host, place: &Place, path: &str, value: &Value) -> Option<Scheme> {
    if matches!(value, Value::Table(_)) {
        let fields = Fields::read(host, value.clone(), place.clone(), &HMAC)?;
        return fields.with("hmac", header).map(Scheme::Hmac);
    }
    let text = value::text(host, place, path, value)?;
    let words: Vec<&str> = Scheme::WORDS.iter().map(Scheme::as_str).collect();
    if let Some(at) = words.iter().position(|word| *word == text) {
        return Scheme::WORDS.into_iter().nth(at);
    }
    let message = format!("`{path}` cannot be `{}`", value::shorten(&text));
    let help = match nearest(&text, words.iter().copied()) {
        None => format!(
            "{}, or {{ hmac = \"X-Signature\" }} for a header of the sender's own",
            advice(None, &words)
        ),
        near => advice(near, &words),
    };
    value::bad(host, place, "script::bad_webhook", message, &help)
}

/// The name of a header, in lower case as requests are read.
fn header(host: &Host, place: &Place, path: &str, value: &Value) -> Option<String> {
    let text = value::text(host, place, path, value)?;
    if !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') {
        return Some(text.to_ascii_lowercase());
    }
    let message = format!("`{}` cannot be the name of a header", value::shorten(&text));
    value::bad(host, place, "script::bad_webhook", message, "write it like `X-Signature`")
}

fn max_body(host: &Host, place: &Place, path: &str, value: &Value) -> Option<u64> {
    let size = value::size(host, place, path, value)?;
    if (1..=Webhook::LARGEST_BODY).contains(&size) {
        return Some(size);
    }
    let message = format!("`{path}` is {}", show_size(size));
    let help = format!(
        "it is {} at most, since a body is held in memory until its signature is checked; larger files are dropped",
        show_size(Webhook::LARGEST_BODY)
    );
    value::bad(host, place, "script::bad_webhook", message, &help)
}

fn rate(host: &Host, place: &Place, path: &str, value: &Value) -> Option<f64> {
    let rate = value::number(host, place, path, value)?;
    if rate > 0.0 && rate <= HIGHEST_RATE {
        return Some(rate);
    }
    let message = format!("`{path}` is {rate}");
    let help = "requests a second, above 0: `50`, or `0.1` for one in ten seconds";
    value::bad(host, place, "script::bad_webhook", message, help)
}
