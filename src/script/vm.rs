//! A Lua state with a small standard library and limits, and the thread its work is done on.

use std::sync::Arc;
use std::time::Duration;

use mlua::chunk::ChunkMode;
use mlua::{Lua, LuaOptions, MultiValue, StdLib, Table, Value};

use super::files::Files;
use super::host::Host;
use super::limits::{Limits, MEMORY};
use super::raised::{Kind, Raised};
use super::{api, require};
use crate::config::Project;

/// The part of the base library that is written in Lua.
const BASE: &str = include_str!("../../stdlib/base.lua");

/// What the base library offers and scripts do not get: they run code from text, print, or touch the machine.
const REMOVED: [&str; 6] = ["collectgarbage", "dofile", "load", "loadfile", "print", "warn"];

/// Names that a script may look for, and what to do instead.
const ABSENT: [(&str, &str); 9] = [
    (
        "io",
        "read files with `run.input:csv()`, `mill.file` or `artifacts[...]`; write them in the sandbox",
    ),
    ("debug", "a mistake is shown with its line and the way to it"),
    (
        "package",
        "`require` finds `tidemill.*` and files under the workflows folder",
    ),
    ("load", "put the code into a module and `require` it"),
    ("loadstring", "put the code into a module and `require` it"),
    ("loadfile", "put the code into a module and `require` it"),
    ("dofile", "put the code into a module and `require` it"),
    ("print", "raise an error, or return a finding, to say something"),
    ("collectgarbage", "memory is looked after by the host"),
];

/// The functions of `os` that tell the time and touch nothing.
const OS: [&str; 4] = ["clock", "date", "difftime", "time"];

/// Above the wall limit, for the case that a single C function (a string pattern) never looks at the limits.
const GRACE: Duration = Duration::from_secs(1);

/// Room for the deepest tree of a source; only what is touched is taken from memory.
const STACK: usize = 256 << 20;

/// Makes a fresh state for one script.
pub(super) fn new(project: &Project, files: Files) -> mlua::Result<(Lua, Host)> {
    let libraries =
        StdLib::TABLE | StdLib::STRING | StdLib::MATH | StdLib::UTF8 | StdLib::COROUTINE | StdLib::OS;
    let lua = Lua::new_with(libraries, LuaOptions::new())?;
    lua.set_memory_limit(MEMORY)?;
    let host = Host::new(project.clone(), files);
    lua.set_app_data(host.clone());
    let globals = lua.globals();
    let full: Table = globals.get("os")?;
    let os = lua.create_table()?;
    for name in OS {
        os.set(name, full.get::<Value>(name)?)?;
    }
    globals.set("os", os)?;
    for name in REMOVED {
        globals.raw_set(name, Value::Nil)?;
    }
    globals.get::<Table>("string")?.set("dump", Value::Nil)?;
    globals.set("require", lua.create_function(require::require)?)?;
    let absent = lua.create_table_from(ABSENT)?;
    let stop = lua.create_function(|_, values: MultiValue| stop(values))?;
    let refuse = lua.create_function(|_, name: String| -> mlua::Result<()> { Err(refuse(&name).into()) })?;
    lua.load(BASE)
        .set_name("=base")
        .set_mode(ChunkMode::Text)
        .call::<()>((stop, refuse, absent))?;
    api::register(&lua)?;
    host.budget().watch(&lua)?;
    Ok((lua, host))
}

/// Passes the results of a protected call on, unless the error it caught must not be caught.
fn stop(values: MultiValue) -> mlua::Result<MultiValue> {
    let caught = values.front() == Some(&Value::Boolean(false));
    match values.get(1) {
        Some(Value::Error(error)) if caught => {
            let is_limit = error
                .downcast_ref::<Raised>()
                .is_some_and(|raised| raised.kind == Kind::Limit);
            let is_memory = error.chain().any(|error| {
                matches!(
                    error.downcast_ref::<mlua::Error>(),
                    Some(mlua::Error::MemoryError(_))
                )
            });
            if is_limit || is_memory {
                return Err(error.as_ref().clone());
            }
        }
        Some(Value::String(text)) if caught && *text == "not enough memory" => {
            return Err(mlua::Error::MemoryError(text.to_string_lossy()));
        }
        _ => {}
    }
    Ok(values)
}

fn refuse(name: &str) -> Raised {
    if name == "__gc" {
        return Raised::misuse("finalizers (`__gc`) are not there")
            .help("close what needs closing with a `local x <close>`")
            .word("__gc");
    }
    let advice = ABSENT.into_iter().find(|(absent, _)| *absent == name);
    Raised::misuse(format!("`{name}` is not there: scripts decide, the sandbox acts"))
        .help(advice.map_or("see docs/lua-api.md", |(_, advice)| advice))
        .word(name)
}

/// Does `work` within `limits` on a thread of its own; `None` when it did not come back in time.
///
/// Not on the runtime's blocking threads: work that a limit cannot reach holds its thread until it ends by itself,
/// and neither the runtime's shutdown nor anybody else's blocking work waits for it.
pub(super) async fn within<T: Send + 'static>(
    host: &Host,
    limits: Limits,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (done, result) = tokio::sync::oneshot::channel();
    let budget = Arc::clone(host.budget());
    let given_up = Cancel(Arc::clone(&budget));
    std::thread::Builder::new()
        .name("lua".into())
        .stack_size(STACK)
        .spawn(move || {
            budget.start(limits);
            let _ = done.send(work());
        })
        .ok()?;
    let result = tokio::time::timeout(limits.wall + GRACE, result).await;
    drop(given_up);
    result.ok()?.ok()
}

/// Ends work that nobody waits for any more.
struct Cancel(Arc<super::limits::Budget>);

impl Drop for Cancel {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
