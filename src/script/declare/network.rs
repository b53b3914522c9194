//! The field `network`: names the sandbox may reach, and credentials it may use without having them.

use mlua::Value;

use crate::diagnostic::Diagnostic;
use crate::script::api::objects::Thing;
use crate::script::api::{Class, Field};
use crate::script::fields::Fields;
use crate::script::host::Host;
use crate::script::place::Place;
use crate::script::value;
use crate::workflow::environment::check_name;
use crate::workflow::network::{Credential, Mode, Network, Pattern, Reach, Rule};

/// What `network` takes.
pub(in crate::script) const NETWORK: Class = Class {
    name: "tidemill.Network",
    word: "network",
    doc: "What the sandbox may reach; nothing without.",
    fields: &[
        Field {
            name: "allow",
            kind: "string[]?",
            doc: "Names: `api.example.com` (ports 443 and 80), `*.example.org:8443` (all names below it, one port).",
        },
        Field {
            name: "learn",
            kind: "boolean?",
            doc: "Allows everything public, and prints at the end what the run needed.",
        },
        Field {
            name: "secrets",
            kind: "table<string, tidemill.Secret>?",
            doc: "Credentials: environment variable of the sandbox = mill.secret(\"NAME\", { host = ... }).",
        },
    ],
};

/// What `mill.secret` takes besides a name.
pub(in crate::script) const BOUND: Class = Class {
    name: "tidemill.Bound",
    word: "mill.secret",
    doc: "Where the value of a secret may go, in headers of requests.",
    fields: &[
        Field {
            name: "host",
            kind: "string",
            doc: "the one host it may go to: `api.example.com`, or with a port",
        },
        Field { name: "methods", kind: "string[]?", doc: "Methods it may go with, like `GET`; any without." },
        Field {
            name: "path",
            kind: "string?",
            doc: "The path it may go to; `/v1/*` for all that begin with `/v1/`. Any without.",
        },
    ],
};

/// Ports of a name without one.
const USUAL_PORTS: [u16; 2] = [443, 80];
/// The port of the gateway's own answers to questions for names.
const DNS: u16 = 53;

/// Reads the field `network`.
pub(super) fn read(host: &Host, place: &Place, value: &Value) -> Option<Network> {
    let fields = Fields::read(host, value.clone(), place.clone(), &NETWORK)?;
    let learn = fields.flag("learn").unwrap_or(false);
    let mode = if learn { Mode::Learn } else { Mode::Enforce };
    if learn {
        let message = "this workflow's sandbox reaches everything public".to_owned();
        let warning = fields.at("learn").mark_name(Diagnostic::new("script::learns", message), "here");
        let help = "run it once, put the list that is printed in `allow`, and take `learn` out";
        host.mistake(warning.help(help).warning());
    }
    let mut allow: Vec<Rule> = Vec::new();
    let listed = fields.list("allow");
    let credentials = credentials(host, fields.map("secrets"));
    let empty = listed.is_empty() && credentials.is_empty() && mode == Mode::Enforce;
    for (index, (place, value)) in listed.into_iter().enumerate() {
        let path = format!("network.allow[{}]", index + 1);
        for rule in rules(host, &place, &path, &value).into_iter().flatten() {
            if !allow.contains(&rule) {
                allow.push(rule);
            }
        }
    }
    if empty && fields.value("secrets") == Value::Nil {
        let message = "`network` allows nothing".to_owned();
        let help = "name hosts in `allow`, or leave `network` out: without it there is no network at all";
        return value::bad(host, place, "script::bad_host", message, help);
    }
    Some(Network::Gateway(Reach { mode, allow, credentials }))
}

/// `host` or `host:port`.
fn rules(host: &Host, place: &Place, path: &str, value: &Value) -> Option<Vec<Rule>> {
    let text = value::text(host, place, path, value)?;
    let shown = value::shorten(&text);
    let bad =
        |why: &str, help: &str| value::bad(host, place, "script::bad_host", format!("`{shown}` {why}"), help);
    if let Some((_, rest)) = text.split_once("://") {
        let name = rest.split(['/', '?', '#']).next().unwrap_or_default();
        return bad("is a URL, and names are wanted", &format!("write `{}`", value::shorten(name)));
    }
    if text == "*" || text.starts_with("*:") {
        let help = "name the hosts; `network = { learn = true }` finds out which a run needs";
        return bad("allows every host there is", help);
    }
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') => (name, Some(port)),
        _ => (text.as_str(), None),
    };
    let bare = name.trim_start_matches('[').split(']').next().unwrap_or_default();
    if bare.parse::<std::net::IpAddr>().is_ok() || text.parse::<std::net::IpAddr>().is_ok() {
        let help = "name the host: what is let through is decided by the name that a connection asks for";
        return bad("is an address, and names are wanted", help);
    }
    let Some(pattern) = Pattern::parse(name) else {
        let help = "write it like `api.example.com`, `*.example.org` or `api.example.com:8443`, in ASCII";
        return bad("is not the name of a host", help);
    };
    if let Pattern::Below(rest) = &pattern
        && !rest.contains('.')
    {
        return bad("allows a whole top-level domain", "name more of the host, like `*.example.org`");
    }
    let ports = match port.map(str::parse::<u16>) {
        None => USUAL_PORTS.to_vec(),
        Some(Ok(port)) if port != 0 && port != DNS => vec![port],
        Some(Ok(DNS)) => return bad("is a DNS server", "the gateway itself answers questions for names"),
        Some(_) => return bad("has a port that is none", "a port is a number from 1 to 65535"),
    };
    Some(ports.into_iter().map(|port| Rule { host: pattern.clone(), port }).collect())
}

/// The credentials, each with the variable of the sandbox that holds its placeholder.
fn credentials(host: &Host, items: Vec<(String, Place, Value)>) -> Vec<Credential> {
    let mut credentials = Vec::new();
    for (variable, place, value) in items {
        let refused = match variable.as_str() {
            // A placeholder there would only keep programs from being found.
            "PATH" | "HOME" => Err("is one that programs need as it is"),
            other => check_name(other),
        };
        if let Err(why) = refused {
            let message = format!("the variable `{}` {why}", value::shorten(&variable));
            let help = "the sandbox finds the placeholder in it: write it like `SHOP_TOKEN`";
            value::bad::<()>(host, &place, "script::bad_secret", message, help);
            continue;
        }
        if let Some(Thing::Credential(credential)) = Thing::of(&value) {
            credentials.push(Credential { variable, ..credential });
        } else {
            let wanted = "mill.secret(\"NAME\", { host = ... })";
            value::wrong::<()>(host, &place, &format!("network.secrets.{variable}"), wanted, &value);
        }
    }
    credentials
}

/// Reads what a secret is bound to. Mistakes are noted, and what is wrong is left empty.
pub(in crate::script) fn bound(host: &Host, place: Place, options: Value, secret: String) -> Credential {
    let mut credential = Credential {
        variable: String::new(),
        secret,
        host: String::new(),
        port: USUAL_PORTS[0],
        methods: Vec::new(),
        path: "/*".to_owned(),
    };
    let Some(fields) = Fields::read(host, options, place, &BOUND) else { return credential };
    let rules = fields.with("host", rules);
    if let Some(Rule { host: pattern, port }) = rules.and_then(|rules| rules.into_iter().next()) {
        match pattern {
            Pattern::Name(name) => (credential.host, credential.port) = (name, port),
            Pattern::Below(_) => {
                let message = "a secret is bound to one host, and this names many".to_owned();
                let help = "write the host in full: whoever runs another one below it would get the value";
                value::bad::<()>(host, &fields.at("host"), "script::bad_host", message, help);
            }
        }
    }
    credential.methods = fields.texts("methods");
    for method in &credential.methods {
        if method.is_empty() || !method.chars().all(|c| c.is_ascii_uppercase()) {
            let message = format!("`{}` is no method of HTTP", value::shorten(method));
            value::bad::<()>(
                host,
                &fields.at("methods"),
                "script::bad_secret",
                message,
                "write it like `GET`",
            );
        }
    }
    if let Some(path) = fields.with("path", path) {
        credential.path = path;
    }
    credential
}

fn path(host: &Host, place: &Place, path: &str, value: &Value) -> Option<String> {
    let text = value::text(host, place, path, value)?;
    let body = text.strip_suffix('*').unwrap_or(&text);
    let plain = body.chars().all(|c| c.is_ascii_graphic() && !"*?#\\".contains(c));
    let steps = body.split('/').any(|part| part == ".." || part == ".");
    if body.starts_with('/') && plain && !steps {
        return Some(text);
    }
    let message = format!("`{}` is no path that can be compared", value::shorten(&text));
    let help = "it begins with `/`, has no `?`, `..` or `.`, and a `*` only at its end: `/v1/*`";
    value::bad(host, place, "script::bad_path", message, help)
}
