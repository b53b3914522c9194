//! The field `environment`.

use std::collections::BTreeMap;

use mlua::Value;

use crate::script::api::objects::Thing;
use crate::script::host::Host;
use crate::script::place::Place;
use crate::script::value;
use crate::workflow::environment::{MOST, MOST_BYTES, check_name, check_value};

/// Reads the field: names and texts that fit, everything else noted.
pub(super) fn read(
    host: &Host,
    place: &Place,
    path: &str,
    value: &Value,
) -> Option<BTreeMap<String, String>> {
    let entries = value::map(host, place, path, value)?;
    if entries.len() > MOST {
        let message = format!("`{path}` has {} variables, and {MOST} are the most", entries.len());
        return value::bad(
            host,
            place,
            "script::bad_environment",
            message,
            "place a file with mill.text instead",
        );
    }
    let mut variables = BTreeMap::new();
    for (name, place, value) in entries {
        if let Err(why) = check_name(&name) {
            let message = format!("the variable `{}` {why}", value::shorten(&name));
            let mistake = crate::diagnostic::Diagnostic::new("script::bad_environment", message);
            host.mistake(place.mark_name(mistake, "here").help("give it another name"));
            continue;
        }
        if let Some(Thing::Secret(secret)) = Thing::of(&value) {
            let message = format!("the secret `{secret}` would stand in the sandbox as {name}");
            let help = "secrets never reach the sandbox: whatever needs one runs on the host";
            value::bad::<()>(host, &place, "script::bad_secret", message, help);
            continue;
        }
        let Some(text) = value::text(host, &place, &format!("{path}.{name}"), &value) else {
            continue;
        };
        match check_value(&text) {
            Ok(()) => {
                variables.insert(name, text);
            }
            Err(why) => {
                let message = format!("the value of `{name}` {why}");
                value::bad::<()>(
                    host,
                    &place,
                    "script::bad_environment",
                    message,
                    "a variable is short text; place what is more as a file with mill.text or mill.bytes",
                );
            }
        }
    }
    let bytes: usize = variables.iter().map(|(name, text)| name.len() + text.len()).sum();
    if bytes > MOST_BYTES {
        let message = format!("`{path}` has {bytes} bytes, and {MOST_BYTES} are the most");
        let help = "place what is long as a file with mill.text or mill.bytes";
        return value::bad(host, place, "script::bad_environment", message, help);
    }
    Some(variables)
}
