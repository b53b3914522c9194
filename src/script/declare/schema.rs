//! The JSON Schema of `expect.json`: a table or a file, complete in itself.

use mlua::{Lua, LuaSerdeExt as _, Value};

use crate::script::host::Host;
use crate::script::place::Place;
use crate::script::{files, value};

/// No schema reaches out of itself: what it says must not depend on a server.
struct NoDocuments;

impl jsonschema::Retrieve for NoDocuments {
    fn retrieve(
        &self,
        uri: &jsonschema::Uri<String>,
    ) -> Result<serde_json::Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("{uri} is another document").into())
    }
}

/// Reads a schema as it is written; whether it is one is another question.
fn read(lua: &Lua, host: &Host, place: &Place, path: &str, value: &Value) -> Option<serde_json::Value> {
    let help = "write the schema as a table, or name a JSON file of the project";
    match value {
        Value::Table(_) => match lua.from_value(value.clone()) {
            Ok(schema) => Some(schema),
            Err(error) => {
                let message = format!("`{path}` cannot be written as JSON: {error}");
                value::bad(host, place, "script::bad_schema", message, help)
            }
        },
        Value::String(_) => {
            let file = value::text(host, place, path, value)?;
            let text = match files::normal(&file).and_then(|file| host.files().text(&file)) {
                Ok(text) => text,
                Err(why) => {
                    let message = format!("`{}` {why}", value::shorten(&file));
                    return value::bad(host, place, "script::missing_file", message, help);
                }
            };
            match serde_json::from_str(&text) {
                Ok(schema) => Some(schema),
                Err(error) => {
                    let message = format!("`{}` is not JSON: {error}", value::shorten(&file));
                    value::bad(host, place, "script::bad_schema", message, help)
                }
            }
        }
        other => value::wrong(host, place, path, "a table or the path of a file", other),
    }
}

/// Reads a schema and notes when it is none.
pub(in crate::script) fn schema(
    lua: &Lua,
    host: &Host,
    place: &Place,
    path: &str,
    value: &Value,
) -> Option<serde_json::Value> {
    let schema = read(lua, host, place, path, value)?;
    match jsonschema::options().with_retriever(NoDocuments).build(&schema) {
        Ok(_) => Some(schema),
        Err(error) => {
            let message = format!("`{path}` is not a JSON Schema: {error}");
            let help = "references to other documents are not followed; everything stands in one schema";
            value::bad(host, place, "script::bad_schema", message, help)
        }
    }
}
