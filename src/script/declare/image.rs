//! What `mill.image` takes: a tag, or a table that says how the image is made.

use std::collections::BTreeMap;

use mlua::Value;

use super::packages;
use crate::diagnostic::{Diagnostic, nearest};
use crate::script::api::objects::Thing;
use crate::script::api::{Class, advice, field};
use crate::script::fields::Fields;
use crate::script::host::Host;
use crate::script::place::Place;
use crate::script::{files, value};
use crate::workflow::image::{Folder, Image, Origin, Pull};
use crate::workflow::reference::Reference;

/// The table `mill.image` takes.
pub(in crate::script) const IMAGE: Class = Class {
    name: "tidemill.ImageOptions",
    word: "mill.image",
    doc: "How an image is made: from a folder (`build`), or from another image (`from`).",
    fields: &[
        field("build", "string?", "a folder of the project with a Dockerfile, e.g. `images/python-data`"),
        field(
            "from",
            "string?",
            "a tag or digest, e.g. `python:3.12-slim`, for `packages`, `platform` and `pull`",
        ),
        field("target", "string?", "The stage of the Dockerfile to build; the last one without."),
        field("args", "table<string, string>?", "Build arguments. They are kept in the image's history."),
        field(
            "secrets",
            "table<string, tidemill.Secret>?",
            "Build secrets: id = mill.secret \"NAME\", for `RUN --mount=type=secret,id=...`.",
        ),
        field("packages", "tidemill.Packages?", "What is installed on top."),
        field("platform", "string?", "For which platform, e.g. `linux/amd64`; the engine's own without."),
        field(
            "pull",
            "\"missing\"|\"never\"|\"always\"?",
            "When a registry is asked for it, or for its base; `missing` without.",
        ),
    ],
};

/// Fields that mean something only where a Dockerfile is built.
const OF_BUILD: [&str; 3] = ["target", "args", "secrets"];
/// Platforms of Debian's and most other images, for a "did you mean".
const PLATFORMS: [&str; 9] = [
    "linux/amd64",
    "linux/arm64",
    "linux/arm64/v8",
    "linux/arm/v7",
    "linux/arm/v6",
    "linux/386",
    "linux/ppc64le",
    "linux/s390x",
    "linux/riscv64",
];

/// Reads what `mill.image` was given.
pub(in crate::script) fn read(host: &Host, place: Place, value: Value) -> Option<Image> {
    if let Value::String(_) = value {
        return tag(host, &place, "mill.image", &value).map(Image::tag);
    }
    let fields = Fields::read(host, value, place, &IMAGE)?;
    let is_given = |name: &str| fields.value(name) != Value::Nil;
    let origin = match (is_given("build"), is_given("from")) {
        (true, true) => {
            let message = "`mill.image` takes `build` or `from`, and has both".to_owned();
            let help = "a folder is built from what its Dockerfile says in FROM; take `from` out";
            value::bad::<()>(host, &fields.at("from"), "script::bad_image", message, help);
            None
        }
        (false, false) => {
            fields.note("script::missing_field", "`mill.image` needs `build` or `from`".into());
            None
        }
        (true, false) => fields.with("build", folder).map(|path| {
            Origin::Folder(Folder {
                path,
                target: fields.with("target", stage),
                args: arguments(host, &fields),
                secrets: secrets(host, &fields),
            })
        }),
        (false, true) => {
            for name in OF_BUILD.into_iter().filter(|name| is_given(name)) {
                let message = format!("`mill.image` has `{name}`, and builds no folder");
                let help = format!("`{name}` goes with `build`: a folder with a Dockerfile");
                value::bad::<()>(host, &fields.at(name), "script::bad_image", message, &help);
            }
            fields.with("from", tag).map(Origin::Reference)
        }
    };
    let packages = fields.with("packages", packages::read).unwrap_or_default();
    let platform = fields.with("platform", platform);
    let pull = fields.with("pull", pull).unwrap_or_default();
    Some(Image { origin: origin?, packages, platform, pull })
}

fn tag(host: &Host, place: &Place, path: &str, value: &Value) -> Option<String> {
    let text = value::text(host, place, path, value)?;
    let why = match Reference::parse(&text) {
        Ok(_) if !host.files().is_pinned() && host.files().has(&format!("{text}/Dockerfile")) => {
            let message =
                format!("`{}` is a folder with a Dockerfile, not the tag of an image", value::shorten(&text));
            let help = format!("build it: mill.image {{ build = \"{}\" }}", value::shorten(&text));
            return value::bad(host, place, "script::bad_image", message, &help);
        }
        Ok(_) => return Some(text),
        Err(why) => why,
    };
    let message = format!("`{}` {why}", value::shorten(&text));
    let help = "write it like `python:3.12-slim` or `ghcr.io/team/tool@sha256:...`, or build one with \
                mill.image { build = \"images/NAME\" }";
    value::bad(host, place, "script::bad_image", message, help)
}

fn folder(host: &Host, place: &Place, path: &str, value: &Value) -> Option<String> {
    let text = value::text(host, place, path, value)?;
    let shown = value::shorten(&text);
    let folder = match files::normal(&text) {
        Ok(folder) => folder,
        Err(why) => {
            let message = format!("`{shown}` {why}");
            return value::bad(host, place, "script::bad_path", message, "name a folder of the project");
        }
    };
    if host.files().is_pinned() {
        return Some(folder);
    }
    let help = format!("make {shown}/Dockerfile, or name an image that exists with mill.image \"TAG\"");
    let dockerfile = format!("{folder}/Dockerfile");
    let message = match host.files().path(&folder) {
        Err(why) => format!("the image folder `{shown}` {why}"),
        Ok(found) if !found.is_dir() => format!("the image folder `{shown}` is not a folder"),
        Ok(_) if !host.files().has(&dockerfile) => format!("the image folder `{shown}` has no Dockerfile"),
        Ok(_) => return Some(folder),
    };
    value::bad(host, place, "script::missing_file", message, &help)
}

fn stage(host: &Host, place: &Place, path: &str, value: &Value) -> Option<String> {
    let text = value::text(host, place, path, value)?;
    if !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c)) {
        return Some(text);
    }
    let message = format!("`{}` is not the name of a stage", value::shorten(&text));
    value::bad(host, place, "script::bad_image", message, "it is what stands behind AS in the Dockerfile")
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn arguments(host: &Host, fields: &Fields<'_>) -> BTreeMap<String, String> {
    let mut arguments = BTreeMap::new();
    for (name, place, value) in fields.map("args") {
        let path = format!("args[\"{}\"]", value::shorten(&name));
        if let Some(Thing::Secret(_)) = Thing::of(&value) {
            let message =
                format!("`{path}` is a secret, and build arguments are kept in the image's history");
            let help = "hand it over in `secrets`, and use it with RUN --mount=type=secret,id=...";
            value::bad::<()>(host, &place, "script::secret_in_image", message, help);
        } else if !is_variable(&name) {
            let mistake =
                Diagnostic::new("script::bad_image", format!("`{path}` is not the name of an argument"));
            host.mistake(
                place.mark_name(mistake, "here").help("it has letters, digits and `_`, as in ARG VERSION"),
            );
        } else if let Some(text) = value::text(host, &place, &path, &value) {
            arguments.insert(name, text);
        }
    }
    arguments
}

fn secrets(host: &Host, fields: &Fields<'_>) -> BTreeMap<String, String> {
    let mut secrets = BTreeMap::new();
    for (id, place, value) in fields.map("secrets") {
        let path = format!("secrets[\"{}\"]", value::shorten(&id));
        if id.is_empty() || !id.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c)) {
            let mistake = Diagnostic::new("script::bad_image", format!("`{path}` is not the id of a secret"));
            host.mistake(place.mark_name(mistake, "here").help("it has letters, digits, `_`, `.` and `-`"));
        } else if let Some(Thing::Secret(variable)) = Thing::of(&value) {
            secrets.insert(id, variable);
        } else if let Value::String(_) = value {
            // The text may be the value itself: messages are stored, so it is not in one.
            let message = format!("`{path}` is text, and must be a mill.secret");
            let help = format!("write {id} = mill.secret \"VARIABLE\": a value in a script is no secret");
            value::bad::<()>(host, &place, "script::wrong_type", message, &help);
        } else {
            value::wrong::<()>(host, &place, &path, "a mill.secret", &value);
        }
    }
    secrets
}

fn platform(host: &Host, place: &Place, path: &str, value: &Value) -> Option<String> {
    let text = value::text(host, place, path, value)?;
    let parts: Vec<&str> = text.split('/').collect();
    let is_part =
        |part: &&str| !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    if parts.first() == Some(&"linux") && (2..=3).contains(&parts.len()) && parts.iter().all(is_part) {
        return Some(text);
    }
    let message = format!("`{}` is not a platform", value::shorten(&text));
    let near = PLATFORMS.into_iter().find(|known| known.ends_with(&format!("/{text}")));
    let help = advice(near.or_else(|| nearest(&text, PLATFORMS)), &PLATFORMS);
    value::bad(host, place, "script::bad_image", message, &help)
}

fn pull(host: &Host, place: &Place, path: &str, value: &Value) -> Option<Pull> {
    let word = value::text(host, place, path, value)?;
    Pull::parse(&word).or_else(|| {
        let words = Pull::ALL.map(Pull::as_str);
        let message = format!("`{path}` is \"{}\"", value::shorten(&word));
        value::bad(host, place, "script::wrong_type", message, &advice(nearest(&word, words), &words))
    })
}
