//! The field `mounts`: host folders a workflow asks for, by the places the project file gives them.

use crate::diagnostic::nearest;
use crate::script::api::advice;
use crate::script::fields::Fields;
use crate::script::host::Host;
use crate::script::value;

/// The places asked for; one the project does not allow is a mistake.
pub(super) fn read(host: &Host, fields: &Fields<'_>) -> Vec<String> {
    let allowed: Vec<&str> =
        host.project().config.sandbox.mounts.iter().map(|mount| mount.at.as_str()).collect();
    let mut places: Vec<String> = Vec::new();
    for (index, (place, value)) in fields.list("mounts").into_iter().enumerate() {
        let path = format!("mounts[{}]", index + 1);
        let Some(text) = value::text(host, &place, &path, &value) else {
            continue;
        };
        if allowed.contains(&text.as_str()) {
            if !places.contains(&text) {
                places.push(text);
            }
            continue;
        }
        let message = format!("tidemill.toml allows no mount at `{}`", value::shorten(&text));
        let help = if allowed.is_empty() {
            "list it under [sandbox]: mounts = [{ host = \"/path/on/the/host\", at = \"/ref\", access = \"ro\" }]".to_owned()
        } else {
            advice(nearest(&text, allowed.iter().copied()), &allowed)
        };
        value::bad::<()>(host, &place, "script::no_mount", message, &help);
    }
    places
}
