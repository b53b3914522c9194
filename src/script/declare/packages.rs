//! The field `packages` of `mill.image`.

use mlua::Value;

use crate::script::api::{Class, Field};
use crate::script::fields::Fields;
use crate::script::host::Host;
use crate::script::place::Place;
use crate::script::value;
use crate::workflow::image::Packages;
use crate::workflow::package;

/// What `packages` takes.
pub(in crate::script) const PACKAGES: Class = Class {
    name: "tidemill.Packages",
    word: "packages",
    doc: "What is installed on top of an image; `apt` comes first.",
    fields: &[
        Field { name: "apt", kind: "string[]?", doc: "Debian packages: `jq`, or `jq=1.6-2.1`." },
        Field {
            name: "python",
            kind: "string[]?",
            doc: "Python packages, for pip: `pandas==2.2.3`, `polars>=1,<2`.",
        },
    ],
};

/// Reads the field.
pub(super) fn read(host: &Host, place: &Place, _: &str, value: &Value) -> Option<Packages> {
    let fields = Fields::read(host, value.clone(), place.clone(), &PACKAGES)?;
    Some(Packages {
        apt: list(host, &fields, "apt", package::is_apt, "write it as apt does: `jq`, or `jq=1.6-2.1`"),
        python: list(
            host,
            &fields,
            "python",
            package::is_python,
            "write it as pip does, without spaces: `pandas`, `pandas==2.2.3`, `polars>=1,<2`; for all else write a \
             Dockerfile",
        ),
    })
}

fn list(
    host: &Host,
    fields: &Fields<'_>,
    name: &str,
    is_package: fn(&str) -> bool,
    help: &str,
) -> Vec<String> {
    let mut packages = Vec::new();
    for (index, (place, value)) in fields.list(name).into_iter().enumerate() {
        let path = format!("{}[{}]", fields.path(name), index + 1);
        let Some(text) = value::text(host, &place, &path, &value) else { continue };
        if is_package(&text) {
            packages.push(text);
        } else {
            let message = format!("`{}` is not a package", value::shorten(&text));
            value::bad::<()>(host, &place, "script::bad_image", message, help);
        }
    }
    packages
}
