//! `tidemill.expect`: what a good artifact is.

use mlua::{Lua, MultiValue, Value};

use super::objects::Thing;
use super::{Class, Entry, Module, advice, field};
use crate::diagnostic::nearest;
use crate::event::finding::Finding;
use crate::script::declare::{columns, schema};
use crate::script::fields::Fields;
use crate::script::host::Host;
use crate::script::place::Place;
use crate::script::{format, value};
use crate::workflow::expectation::{Csv, Expect, File, Image, Json, Text};

/// The module.
pub(super) const MODULE: Module = Module {
    name: "tidemill.expect",
    local: "expect",
    doc: "Expectations: what a declared output must be. Everything found wrong goes back to the agent.",
    entries: &[
        Entry {
            name: "csv",
            signature: "(options?: tidemill.Csv): tidemill.Expectation",
            doc: "A table with a header row.",
            run: csv,
        },
        Entry {
            name: "json",
            signature: "(options?: tidemill.Json): tidemill.Expectation",
            doc: "A JSON document.",
            run: json,
        },
        Entry {
            name: "image",
            signature: "(options?: tidemill.Picture): tidemill.Expectation",
            doc: "A picture that really decodes and is not blank.",
            run: image,
        },
        Entry {
            name: "text",
            signature: "(options?: tidemill.Text): tidemill.Expectation",
            doc: "Text in UTF-8.",
            run: text,
        },
        Entry {
            name: "file",
            signature: "(options?: tidemill.File): tidemill.Expectation",
            doc: "Any file.",
            run: file,
        },
        Entry {
            name: "fail",
            signature: "(message: string, ...: any): tidemill.Finding",
            doc: "What `validate` returns when something is wrong; further arguments are formatted in as by \
                  `string.format`. A list of findings may be returned as well.",
            run: fail,
        },
    ],
    classes: &[&CSV, &columns::RANGE, &JSON, &IMAGE, &TEXT, &FILE],
};

const CSV: Class = Class {
    name: "tidemill.Csv",
    word: "expect.csv",
    doc: "What `expect.csv` takes.",
    fields: &[
        field("columns", "string[]?", "Columns that must be there; others may be."),
        field(
            "types",
            "table<string, \"string\"|\"integer\"|\"number\"|\"boolean\"|\"date\"|\"datetime\">?",
            "What a column's values are; empty cells are left to `not_null`.",
        ),
        field("min_rows", "integer?", "Rows at least, the header not counted."),
        field("max_rows", "integer?", "Rows at most."),
        field("unique", "string[]?", "Columns whose values together occur once."),
        field("not_null", "string[]?", "Columns without empty cells."),
        field(
            "ranges",
            "table<string, tidemill.Range>?",
            "Numbers of a column between these, both included.",
        ),
        field("enum", "table<string, string[]>?", "The only values of a column."),
        field(
            "pattern",
            "table<string, string>?",
            "Patterns (regular expressions) that a column's values match as a whole.",
        ),
    ],
};

const JSON: Class = Class {
    name: "tidemill.Json",
    word: "expect.json",
    doc: "What `expect.json` takes.",
    fields: &[field(
        "schema",
        "table|string?",
        "JSON Schema, as a table or as the path of a file of the project.",
    )],
};

const IMAGE: Class = Class {
    name: "tidemill.Picture",
    word: "expect.image",
    doc: "What `expect.image` takes.",
    fields: &[
        field("format", "\"png\"|\"jpeg\"|\"gif\"|\"webp\"|\"bmp\"?", "The format; any of them without."),
        field("min_width", "integer?", "Pixels at least."),
        field("max_width", "integer?", "Pixels at most."),
        field("min_height", "integer?", "Pixels at least."),
        field("max_height", "integer?", "Pixels at most."),
    ],
};

const TEXT: Class = Class {
    name: "tidemill.Text",
    word: "expect.text",
    doc: "What `expect.text` takes.",
    fields: &[
        field("ascii", "boolean?", "Whether only ASCII is allowed."),
        field("min_words", "integer?", "Words at least."),
        field("max_words", "integer?", "Words at most."),
        field("contains", "string|string[]?", "What must occur."),
        field("pattern", "string?", "A pattern (regular expression) that must occur."),
    ],
};

const FILE: Class = Class {
    name: "tidemill.File",
    word: "expect.file",
    doc: "What `expect.file` takes.",
    fields: &[
        field("min_size", "string|integer?", "Bytes at least; 1 without."),
        field("max_size", "string|integer?", "Bytes at most."),
        field(
            "magic",
            "string?",
            "What its first bytes must show: a MIME type (`application/pdf`) or an extension (`pdf`).",
        ),
    ],
};

/// Runs `read` on the options of `expect.NAME`; none at all are an empty table.
fn with(
    lua: &Lua,
    class: &'static Class,
    arguments: MultiValue,
    read: impl FnOnce(&Lua, &Host, &Fields<'_>) -> Expect,
    otherwise: Expect,
) -> mlua::Result<Value> {
    let host = Host::of(lua)?;
    host.loading(class.word)?;
    let name = class.word.rsplit('.').next().unwrap_or(class.word);
    let place = host.call_site(lua, name, &arguments).argument(0);
    let value = match arguments.into_iter().next() {
        None | Some(Value::Nil) => Value::Table(lua.create_table()?),
        Some(value) => value,
    };
    let expect = Fields::read(&host, value, place, class).map(|fields| read(lua, &host, &fields));
    lua.pack(Thing::Expect(expect.unwrap_or(otherwise)))
}

/// Notes bounds of which the lower is above the upper.
fn ordered<T: PartialOrd + std::fmt::Display>(
    host: &Host,
    fields: &Fields<'_>,
    low: (&str, Option<T>),
    high: (&str, Option<T>),
) {
    if let (Some(least), Some(most)) = (low.1, high.1)
        && least > most
    {
        let message =
            format!("`{}` is {least} and `{}` is {most}, so nothing can pass", fields.path(low.0), high.0);
        let help = "the lower bound goes first";
        value::bad::<()>(host, &fields.at(low.0), "script::bad_limit", message, help);
    }
}

fn csv(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    with(
        lua,
        &CSV,
        arguments,
        |_, host, fields| {
            let csv = Csv {
                columns: fields.texts("columns"),
                types: columns::columns(host, fields, "types", columns::column_type),
                min_rows: fields.count("min_rows"),
                max_rows: fields.count("max_rows"),
                unique: fields.texts("unique"),
                not_null: fields.texts("not_null"),
                ranges: columns::columns(host, fields, "ranges", columns::range),
                enums: columns::columns(host, fields, "enum", value::texts),
                patterns: columns::columns(host, fields, "pattern", columns::pattern),
            };
            ordered(host, fields, ("min_rows", csv.min_rows), ("max_rows", csv.max_rows));
            Expect::Csv(csv)
        },
        Expect::Csv(Csv::default()),
    )
}

fn json(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    with(
        lua,
        &JSON,
        arguments,
        |lua, _, fields| {
            let read = |host: &Host, place: &Place, path: &str, value: &Value| {
                schema::schema(lua, host, place, path, value)
            };
            Expect::Json(Json { schema: fields.with("schema", read) })
        },
        Expect::Json(Json::default()),
    )
}

fn image(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    with(
        lua,
        &IMAGE,
        arguments,
        |_, host, fields| {
            let pixels = |name: &str| {
                let count = fields.count(name)?;
                u32::try_from(count).ok().or_else(|| {
                    let message = format!("`{}` is more pixels than any picture has", fields.path(name));
                    value::bad(host, &fields.at(name), "script::bad_limit", message, "write a smaller number")
                })
            };
            let format = fields.with("format", |host, place, path, value| {
                const FORMATS: [&str; 5] = ["png", "jpeg", "gif", "webp", "bmp"];
                let word = value::text(host, place, path, value)?;
                if FORMATS.contains(&word.as_str()) {
                    return Some(word);
                }
                let message = format!("`{path}` is \"{}\", which is no format", value::shorten(&word));
                let help = advice(nearest(&word, FORMATS), &FORMATS);
                value::bad(host, place, "script::wrong_type", message, &help)
            });
            let image = Image {
                format,
                min_width: pixels("min_width"),
                max_width: pixels("max_width"),
                min_height: pixels("min_height"),
                max_height: pixels("max_height"),
            };
            ordered(host, fields, ("min_width", image.min_width), ("max_width", image.max_width));
            ordered(host, fields, ("min_height", image.min_height), ("max_height", image.max_height));
            Expect::Image(image)
        },
        Expect::Image(Image::default()),
    )
}

fn text(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    with(
        lua,
        &TEXT,
        arguments,
        |_, host, fields| {
            let contains = fields.with("contains", |host, place, path, value| match value {
                Value::String(_) => value::text(host, place, path, value).map(|text| vec![text]),
                other => value::texts(host, place, path, other),
            });
            let text = Text {
                ascii: fields.flag("ascii").unwrap_or(false),
                min_words: fields.count("min_words"),
                max_words: fields.count("max_words"),
                contains: contains.unwrap_or_default(),
                pattern: fields.with("pattern", columns::pattern),
            };
            ordered(host, fields, ("min_words", text.min_words), ("max_words", text.max_words));
            Expect::Text(text)
        },
        Expect::Text(Text::default()),
    )
}

fn file(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    with(
        lua,
        &FILE,
        arguments,
        |_, host, fields| {
            let file = File {
                min_size: fields.with("min_size", value::size),
                max_size: fields.with("max_size", value::size),
                magic: fields.text("magic"),
            };
            ordered(host, fields, ("min_size", file.min_size), ("max_size", file.max_size));
            Expect::File(file)
        },
        Expect::File(File::default()),
    )
}

fn fail(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let message = format::sentence(lua, "expect.fail", arguments)?;
    lua.pack(Thing::Finding(Finding::new("validate", message)))
}
