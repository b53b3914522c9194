//! Sentences of scripts: `expect.fail("anomaly at %s", row.timestamp)`.

use mlua::{Function, Lua, MultiValue, Table, Value};

use super::raised::Raised;
use super::value::describe;

/// Formats the arguments of `who` as `string.format` does; a value that a `%s` is given as `nil` shows as `nil`.
pub(super) fn sentence(lua: &Lua, who: &str, arguments: MultiValue) -> mlua::Result<String> {
    let word = who.rsplit('.').next().unwrap_or(who);
    match arguments.front() {
        Some(Value::String(text)) if arguments.len() == 1 => Ok(text.to_string_lossy()),
        Some(Value::String(_)) => {
            let string: Table = lua.globals().get("string")?;
            let format: Function = string.get("format")?;
            format.call::<mlua::LuaString>(arguments).map(|text| text.to_string_lossy())
        }
        Some(other) => {
            let message = format!("`{who}` takes a sentence, and got {}", describe(other));
            Err(Raised::misuse(message).word(word).into())
        }
        None => {
            Err(Raised::misuse(format!("`{who}` needs a sentence that says what is wrong")).word(word).into())
        }
    }
}
