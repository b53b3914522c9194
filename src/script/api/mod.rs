//! The `tidemill.*` modules: one table of entries per module builds the Lua table, the editor's stubs and the docs.

mod content;
pub mod docs;
mod drop;
pub(super) mod expect;
pub(super) mod guard;
pub(super) mod mill;
pub(super) mod notify;
pub(super) mod objects;
mod schedule;
pub(super) mod test;
mod webhook;

use mlua::{Lua, MultiValue, Table, Value};

use super::host::Host;
use super::raised::Raised;
use super::value::shorten;
use crate::diagnostic::nearest;

/// A module that `require` finds.
#[derive(Debug)]
pub struct Module {
    /// What is required, e.g. `tidemill.expect`.
    pub name: &'static str,
    /// The local it is usually kept in, e.g. `expect`.
    pub local: &'static str,
    /// What it is for.
    pub doc: &'static str,
    /// Its functions.
    pub entries: &'static [Entry],
    /// The tables they take and the objects they give.
    pub classes: &'static [&'static Class],
}

/// A function of a module.
#[derive(Debug)]
pub struct Entry {
    /// Its name in the module.
    pub name: &'static str,
    /// Parameters and result in LuaLS notation, e.g. `(options: tidemill.Csv): tidemill.Expectation`.
    pub signature: &'static str,
    /// What it does.
    pub doc: &'static str,
    /// The function itself.
    pub run: fn(&Lua, MultiValue) -> mlua::Result<Value>,
}

/// A table that a script writes, or an object it gets.
#[derive(Debug)]
pub struct Class {
    /// Its name in the editor, e.g. `tidemill.Csv`.
    pub name: &'static str,
    /// How messages speak of it, e.g. `expect.csv`.
    pub word: &'static str,
    /// What it is.
    pub doc: &'static str,
    /// Its fields and methods.
    pub fields: &'static [Field],
}

/// A field of a [`Class`].
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Its type in LuaLS notation; `?` at the end when it may be left out.
    pub kind: &'static str,
    /// What it means.
    pub doc: &'static str,
}

/// A field of a class.
pub(super) const fn field(name: &'static str, kind: &'static str, doc: &'static str) -> Field {
    Field { name, kind, doc }
}

/// Every module.
pub const MODULES: [&Module; 4] = [&mill::MODULE, &expect::MODULE, &guard::MODULE, &test::MODULE];

/// Where the modules' tables are kept.
const BUILT: &str = "tidemill.modules";

/// Builds the modules of a fresh state.
pub(super) fn register(lua: &Lua) -> mlua::Result<()> {
    let built = lua.create_table()?;
    for module in MODULES {
        built.raw_set(module.name, build(lua, module)?)?;
    }
    lua.set_named_registry_value(BUILT, built)
}

/// The module of that name, when there is one.
pub(super) fn module(lua: &Lua, name: &str) -> mlua::Result<Option<Value>> {
    let built: Table = lua.named_registry_value(BUILT)?;
    built.raw_get(name)
}

/// A module's table. It raises on names it does not have, and cannot be changed.
fn build(lua: &Lua, module: &'static Module) -> mlua::Result<Table> {
    let functions = lua.create_table()?;
    for entry in module.entries {
        functions.raw_set(entry.name, lua.create_function(entry.run)?)?;
    }
    let outside = lua.create_table()?;
    let rules = lua.create_table()?;
    let look = functions.clone();
    rules.raw_set(
        "__index",
        lua.create_function(move |lua, (_, key): (Table, Value)| {
            let found: Value = look.raw_get(&key)?;
            if found != Value::Nil {
                return Ok(found);
            }
            let name = key.to_string()?;
            let Some(raised) = unknown_name(module.name, &name) else {
                return Ok(Value::Nil);
            };
            // While a script loads, the mistake is noted where it stands in the source; taking what was meant finds
            // the mistakes behind it.
            let host = Host::of(lua)?;
            match nearest(&name, module.entries.iter().map(|entry| entry.name)) {
                Some(near) if !host.is_running() && host.has_mistake(&raised.message) => look.raw_get(near),
                _ => Err(raised.into()),
            }
        })?,
    )?;
    rules.raw_set(
        "__newindex",
        lua.create_function(move |_, _: MultiValue| -> mlua::Result<()> {
            let raised = Raised::misuse(format!("`{}` cannot be changed", module.name));
            Err(raised.help("keep your own functions in a module of your own").into())
        })?,
    )?;
    rules.raw_set(
        "__pairs",
        lua.create_function(move |lua, _: Table| {
            let next: Value = lua.globals().get("next")?;
            Ok((next, functions.clone(), Value::Nil))
        })?,
    )?;
    rules.raw_set("__metatable", false)?;
    outside.set_metatable(Some(rules))?;
    Ok(outside)
}

/// What to raise for a name that a module does not have; `None` when it has it, or there is no such module.
pub(super) fn unknown_name(module: &str, name: &str) -> Option<Raised> {
    let module = MODULES.into_iter().find(|known| known.name == module)?;
    let names: Vec<&str> = module.entries.iter().map(|entry| entry.name).collect();
    if names.contains(&name) {
        return None;
    }
    let message = format!("`{}` has no `{}`", module.name, shorten(name));
    let near = nearest(name, names.iter().copied());
    Some(Raised::unknown(message).help(advice(near, &names)).word(name))
}

/// "did you mean", or the names there are.
pub(in crate::script) fn advice(near: Option<&str>, known: &[&str]) -> String {
    match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there is: {}", known.join(", ")),
    }
}
