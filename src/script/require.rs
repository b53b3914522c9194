//! `require`: the `tidemill.*` modules, and Lua files under the workflows folder.

use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, Table, Value};

use super::host::Host;
use super::raised::Raised;
use super::{api, files};
use crate::diagnostic::nearest;

/// Where the results of required modules are kept.
const LOADED: &str = "tidemill.loaded";
/// Where the files being loaded are kept, outermost first.
const LOADING: &str = "tidemill.loading";

/// Lua's `require` as scripts get it.
pub(super) fn require(lua: &Lua, name: String) -> mlua::Result<Value> {
    if let Some(module) = api::module(lua, &name)? {
        return Ok(module);
    }
    if name == "tidemill" || name.starts_with("tidemill.") {
        let near = nearest(&name, api::MODULES.iter().map(|module| module.name));
        let raised = Raised::misuse(format!("there is no module `{name}`")).word(&name);
        let help = near.map_or("see docs/lua-api.md".into(), |near| {
            format!("did you mean `{near}`?")
        });
        return Err(raised.help(help).into());
    }
    let host = Host::of(lua)?;
    let folder = host
        .project()
        .config
        .folders
        .workflows
        .to_string_lossy()
        .into_owned();
    let path = files::normal(&name.replace('.', "/"))
        .ok()
        .filter(|_| !name.contains("..") && !name.starts_with('/'))
        .and_then(|path| files::normal(&format!("{folder}/{path}.lua")).ok())
        .ok_or_else(|| {
            Raised::misuse(format!("`{name}` is not a module's name"))
                .help("write `require \"shop\"` for workflows/shop.lua, `require \"lib.shop\"` for workflows/lib/shop.lua")
                .word(&name)
        })?;
    let loaded = table(lua, LOADED)?;
    let known: Value = loaded.raw_get(path.as_str())?;
    if known != Value::Nil {
        host.require(&path);
        return Ok(known);
    }
    let text = host.files().text(&path).map_err(|why| {
        Raised::misuse(format!("module `{name}` cannot be required: {path} {why}"))
            .help("modules are files under the workflows folder; `tidemill.*` is built in")
            .word(&name)
    })?;
    host.require(&path);
    let value = run(lua, &path, &text)?;
    // As in Lua, a module that returns nothing counts as `true`.
    let value = if value == Value::Nil {
        Value::Boolean(true)
    } else {
        value
    };
    loaded.raw_set(path.as_str(), value.clone())?;
    Ok(value)
}

/// Runs a file and gives what it returns. Files that require each other in a circle are refused.
pub(super) fn run(lua: &Lua, file: &str, text: &str) -> mlua::Result<Value> {
    let host = Host::of(lua)?;
    let loading = table(lua, LOADING)?;
    let mut way: Vec<String> = loading.sequence_values().collect::<mlua::Result<_>>()?;
    if way.iter().any(|before| before == file) {
        way.push(file.to_owned());
        let raised = Raised::misuse(format!(
            "files require each other in a circle: {}",
            way.join(" -> ")
        ));
        return Err(raised.help("move what both need into a third module").into());
    }
    host.add_source(file, text);
    let function = compile(lua, file, text)?;
    // Only what Lua takes is parsed a second time: it refuses nesting that no parser survives.
    host.add_spans(file);
    loading.push(file)?;
    let value = function.call(());
    loading.pop::<Value>()?;
    value
}

/// Compiles the text of a file; never bytecode, which could break the state.
fn compile(lua: &Lua, file: &str, text: &str) -> mlua::Result<Function> {
    lua.load(text)
        .set_name(format!("@{file}"))
        .set_mode(ChunkMode::Text)
        .into_function()
}

fn table(lua: &Lua, name: &str) -> mlua::Result<Table> {
    if let Some(table) = lua.named_registry_value::<Option<Table>>(name)? {
        return Ok(table);
    }
    let table = lua.create_table()?;
    lua.set_named_registry_value(name, &table)?;
    Ok(table)
}
