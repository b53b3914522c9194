//! The field `sandbox`, and what goes with which kind.

use mlua::Value;

use crate::script::fields::Fields;
use crate::script::host::Host;
use crate::script::value;
use crate::workflow::sandbox::Kind;

/// Reads the kind of sandbox; notes what the kind has no use for, and what it lacks.
pub(super) fn read(host: &Host, fields: &Fields<'_>) -> Kind {
    let kind = fields.with("sandbox", |host, place, path, value| {
        let word = value::text(host, place, path, value)?;
        let kind = Kind::parse(&word);
        if kind.is_none() {
            let message = format!("`sandbox` is \"{}\"", value::shorten(&word));
            let help = "it is \"docker\", \"local\" or \"none\"";
            return value::bad(host, place, "script::wrong_type", message, help);
        }
        kind
    });
    let kind = kind.unwrap_or_default();
    if kind == Kind::Docker {
        if fields.value("image") == Value::Nil {
            fields.lacks("image", "where its commands run: mill.image");
        }
        return kind;
    }
    for name in ["image", "network", "mounts"] {
        if fields.value(name) != Value::Nil {
            let message = format!("`{name}` has no meaning with `sandbox = \"{}\"`", kind.as_str());
            let help = "take it out, or use `sandbox = \"docker\"`";
            value::bad::<()>(host, &fields.at(name), "script::no_meaning", message, help);
        }
    }
    kind
}
