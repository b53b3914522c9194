//! The editor's stubs and the docs page, made from the modules' tables.

use std::fmt::Write as _;

use super::{Class, MODULES, Module};

/// The LuaLS stub of a module, for `stdlib/types/`.
pub fn stub(module: &Module) -> String {
    let mut text = format!("---@meta {}\n\n-- {}\n", module.name, module.doc);
    for class in module.classes {
        let _ = write!(text, "\n---{}\n---@class {}\n", class.doc, class.name);
        for field in class.fields {
            let kind = field.kind.strip_suffix('?').unwrap_or(field.kind);
            let optional = if kind.len() < field.kind.len() { "?" } else { "" };
            let _ = writeln!(text, "---@field {}{optional} {kind} {}", field.name, sentence(field.doc));
        }
    }
    let _ = write!(text, "\n---@class {}.module\nlocal {} = {{}}\n", module.name, module.local);
    for entry in module.entries {
        let (parameters, result) = parts(entry.signature);
        let _ = write!(text, "\n---{}\n", entry.doc);
        let mut names = Vec::new();
        for (name, kind) in &parameters {
            let _ = writeln!(text, "---@param {name} {kind}");
            names.push(name.trim_end_matches('?'));
        }
        let _ = writeln!(text, "---@return {result}");
        let _ = writeln!(text, "function {}.{}({}) end", module.local, entry.name, names.join(", "));
    }
    let _ = write!(text, "\nreturn {}\n", module.local);
    text
}

/// The file name of a module's stub.
pub fn stub_name(module: &Module) -> String {
    format!("{}.lua", module.name)
}

/// The opaque objects that the signatures name: they have no fields a script could use.
pub const OPAQUE: [(&str, &str); 13] = [
    ("tidemill.Declared", "What a script returns: a declared workflow."),
    ("tidemill.Trigger", "What starts a workflow."),
    ("tidemill.Notification", "Who is told what becomes of runs."),
    ("tidemill.Afterwards", "Where a dropped file goes when its runs have ended."),
    ("tidemill.Image", "A container image."),
    ("tidemill.Secret", "A handle on a secret; its value never is in Lua."),
    ("tidemill.Expectation", "What an output must be."),
    ("tidemill.Finding", "Something a check found wrong."),
    ("tidemill.Guardrail", "A check before something happens."),
    ("tidemill.Verdict", "What a guardrail says."),
    ("tidemill.Step", "One answer of a scripted model."),
    ("tidemill.Part", "A scripted model."),
    ("tidemill.Item", "One item of a conversation, as a scripted model's function sees it."),
];

/// The stub of the opaque objects.
pub fn objects() -> String {
    let mut text =
        String::from("---@meta tidemill.objects\n\n-- Objects that scripts hand on and cannot take apart.\n");
    for (name, doc) in OPAQUE {
        let _ = write!(text, "\n---{doc}\n---@class {name}\n");
    }
    text
}

/// The docs page, `docs/lua-api.md`.
pub fn page() -> String {
    let mut text = String::from(
        "# The Lua API\n\nMade from the tables in `src/script/api/`; `UPDATE_DOCS=1 cargo test --test all script` \
         writes it anew.\n\nScripts get Lua 5.4 with `string`, `table`, `math`, `utf8`, `coroutine`, `os.time`, \
         `os.date`, `os.clock` and `os.difftime`, and `require` for the modules below and for files under \
         `workflows/`. There is no `io`, `debug`, `load` or `print`: scripts decide, the sandbox acts. Expected \
         failure returns `nil, why`; misuse raises.\n",
    );
    for module in MODULES {
        let _ = write!(text, "\n## `{}`\n\n{}\n", module.name, module.doc);
        let _ = write!(text, "\n```lua\nlocal {} = require \"{}\"\n```\n", module.local, module.name);
        for entry in module.entries {
            let _ = write!(
                text,
                "\n### `{}.{}`\n\n`{}`\n\n{}\n",
                module.local, entry.name, entry.signature, entry.doc
            );
        }
        for class in module.classes {
            write_class(&mut text, class);
        }
    }
    text
}

fn write_class(text: &mut String, class: &Class) {
    let _ = write!(text, "\n### `{}`\n\n{}\n\n| field | type | |\n|---|---|---|\n", class.name, class.doc);
    for field in class.fields {
        let kind = field.kind.replace('|', "\\|");
        let _ = writeln!(text, "| `{}` | `{kind}` | {} |", field.name, sentence(field.doc));
    }
}

/// Docs of required fields double as advice, and begin with a small letter; here they are sentences.
fn sentence(doc: &str) -> String {
    let mut characters = doc.chars();
    let first = characters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    let stop = if doc.ends_with('.') { "" } else { "." };
    format!("{first}{}{stop}", characters.as_str())
}

/// The parameters and the result of `(a: string, b?: integer): T`.
fn parts(signature: &str) -> (Vec<(String, String)>, String) {
    let (parameters, result) = signature.rsplit_once("): ").unwrap_or((signature, "nil"));
    let parameters = parameters.trim_start_matches('(');
    let named = parameters.split(", ").filter_map(|parameter| parameter.split_once(": "));
    (named.map(|(name, kind)| (name.to_owned(), kind.to_owned())).collect(), result.to_owned())
}
