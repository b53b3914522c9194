//! The field `network`: names the sandbox may reach, and credentials it may use without having them.

use mlua::Value;

use crate::script::api::{Class, Field};
use crate::script::fields::Fields;
use crate::script::host::Host;
use crate::script::place::Place;
use crate::script::value;
use crate::workflow::network::{Mode, Network, Pattern, Reach, Rule};

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
    let mut allow: Vec<Rule> = Vec::new();
    let listed = fields.list("allow");
    let empty = listed.is_empty() && mode == Mode::Enforce;
    for (index, (place, value)) in listed.into_iter().enumerate() {
        let path = format!("network.allow[{}]", index + 1);
        for rule in rules(host, &place, &path, &value).into_iter().flatten() {
            if !allow.contains(&rule) {
                allow.push(rule);
            }
        }
    }
    if empty {
        let message = "`network` allows nothing".to_owned();
        let help = "name hosts in `allow`, or leave `network` out: without it there is no network at all";
        return value::bad(host, place, "script::bad_host", message, help);
    }
    Some(Network::Gateway(Reach { mode, allow, credentials: Vec::new() }))
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
