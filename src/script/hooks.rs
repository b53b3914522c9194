//! The functions of a script, called for a run: the prompt, guardrails, the check across files.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use mlua::{Function, Lua, LuaSerdeExt as _, Value};

use super::api::objects::Thing;
use super::errors::{self, Phase};
use super::host::Host;
use super::limits::Limits;
use super::{value, view, vm};
use crate::diagnostic::{Diagnostic, Result};
use crate::event::finding::Finding;
use crate::event::verdict::{Stage, Verdict};
use crate::expect::Validate;
use crate::guard::{Guard, Subject};
use crate::workflow::Hook;
use crate::workflow::manifest::Content;
use crate::workflow::view::{Artifact, RunView};

/// A loaded script's functions; clones share one Lua state.
#[derive(Debug, Clone)]
pub struct Script(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    lua: Lua,
    host: Host,
    limits: Limits,
    /// Paths of the declared outputs.
    outputs: Vec<String>,
    /// One function at a time: waiting for another one costs no wall time of one's own.
    turn: tokio::sync::Mutex<()>,
    /// A call did not come back: the state is in the middle of something, and nothing more is asked of it.
    lost: AtomicBool,
}

impl Script {
    /// The functions of a state that finished loading.
    pub(super) fn new(lua: Lua, host: Host, outputs: Vec<String>) -> Self {
        Self::limited(lua, host, outputs, Limits::HOOK)
    }

    /// The same with limits of its own.
    pub(super) fn limited(lua: Lua, host: Host, outputs: Vec<String>, limits: Limits) -> Self {
        host.run();
        Self(Arc::new(Inner {
            lua,
            host,
            limits,
            outputs,
            turn: tokio::sync::Mutex::new(()),
            lost: AtomicBool::new(false),
        }))
    }

    /// The prompt that a function makes for a run.
    pub async fn prompt(&self, hook: Hook, run: Arc<RunView>) -> Result<String> {
        let made = self
            .call(hook, move |lua, function| {
                let value: Value = function.call(view::Run(run))?;
                Ok(match (&value, Thing::of(&value)) {
                    (Value::String(text), _) => Ok(text.to_string_lossy()),
                    (_, Some(Thing::Content(Content::Text(text), _))) => Ok(text),
                    (_, Some(Thing::Content(Content::File(path), _))) => {
                        Host::of(lua)?.files().known(&path).ok_or_else(|| {
                            format!("a mill.file that was not read when the script loaded ({path})")
                        })
                    }
                    (other, _) => Err(value::describe(other)),
                })
            })
            .await?;
        match made {
            Ok(text) if !text.trim().is_empty() => Ok(text),
            Ok(_) => {
                Err(self.nonsense(hook, "hook::bad_prompt", "the prompt function returned an empty text"))
            }
            Err(what) => {
                let message = format!("the prompt function returned {what}, and must return text");
                Err(self.nonsense(hook, "hook::bad_prompt", &message))
            }
        }
    }

    /// A guardrail that is a function of the script.
    pub fn guard(&self, on: Stage, name: &str, hook: Hook, run: Arc<RunView>) -> Box<dyn Guard> {
        Box::new(HookGuard { script: self.clone(), on, name: name.to_owned(), hook, run })
    }

    /// The check across files that is a function of the script.
    pub fn validate(&self, hook: Hook) -> Box<dyn Validate> {
        Box::new(HookValidate { script: self.clone(), hook })
    }

    /// What the functions know.
    pub(super) fn host(&self) -> &Host {
        &self.0.host
    }

    /// Calls a function within the limits, on a thread of its own.
    pub(super) async fn call<T: Send + 'static>(
        &self,
        hook: Hook,
        work: impl FnOnce(&Lua, Function) -> mlua::Result<T> + Send + 'static,
    ) -> Result<T> {
        let inner = &self.0;
        let _turn = inner.turn.lock().await;
        // Set while the call is under way, so that a cancelled future leaves it set.
        if inner.lost.swap(true, Ordering::SeqCst) {
            let message = "a function of the script did not come back, so no other can be asked";
            return Err(Diagnostic::new("hook::lost", message).help("start the run again"));
        }
        let Some(function) = inner.host.kept(hook) else {
            let message = "the script has no such function";
            return Err(Diagnostic::new("hook::unknown", message).help("this is a bug; please report it"));
        };
        let held = Arc::clone(inner);
        let done = vm::within(&inner.host, inner.limits, move || work(&held.lua, function)).await;
        match done {
            Some(Ok(value)) => {
                inner.lost.store(false, Ordering::SeqCst);
                Ok(value)
            }
            Some(Err(error)) => {
                inner.lost.store(false, Ordering::SeqCst);
                let home = inner.host.defined(hook);
                Err(errors::diagnostic(&inner.host, &error, Phase::Hook, home))
            }
            None => Err(self
                .nonsense(hook, "hook::timeout", "a function of the script did not end in time")
                .help("look for a string pattern such as `.-.-.-x` on long text; heavy work belongs in the sandbox")),
        }
    }

    /// A diagnostic about a function as a whole, its first line underlined.
    pub(super) fn nonsense(&self, hook: Hook, code: &'static str, message: &str) -> Diagnostic {
        let diagnostic = Diagnostic::new(code, message);
        match self.0.host.defined(hook) {
            Some((chunk, line)) => {
                let span = chunk.source.line_span(line);
                diagnostic.label(&chunk.source, span, "this function")
            }
            None => diagnostic,
        }
    }
}

#[derive(Debug)]
struct HookGuard {
    script: Script,
    on: Stage,
    name: String,
    hook: Hook,
    run: Arc<RunView>,
}

#[async_trait]
impl Guard for HookGuard {
    fn name(&self) -> &str {
        &self.name
    }

    fn watches(&self, stage: Stage) -> bool {
        self.on == stage
    }

    async fn judge(&self, subject: &Subject<'_>) -> Result<Verdict> {
        let subject = Seen::from(subject);
        let run = Arc::clone(&self.run);
        let said = self
            .script
            .call(self.hook, move |lua, function| {
                let value: Value = function.call((subject.table(lua)?, view::Run(run)))?;
                Ok(match (&value, Thing::of(&value)) {
                    (Value::Nil, _) => Ok(Verdict::Pass),
                    (_, Some(Thing::Verdict(verdict))) => Ok(verdict),
                    (other, _) => Err(value::describe(other)),
                })
            })
            .await?;
        said.map_err(|what| {
            let message = format!("the guardrail `{}` returned {what}, which is no verdict", self.name);
            self.script
                .nonsense(self.hook, "hook::bad_verdict", &message)
                .help("return guard.deny(...), guard.ask(...), guard.replace(...), guard.pass(), or nothing to pass")
        })
    }
}

/// A subject on its way to Lua's thread.
enum Seen {
    Input { name: String, size: u64 },
    Text(String),
    Call { tool: String, arguments: serde_json::Value },
    Output { tool: String, output: String },
}

impl From<&Subject<'_>> for Seen {
    fn from(subject: &Subject<'_>) -> Self {
        match *subject {
            Subject::Input { name, size, .. } => Self::Input { name: name.to_owned(), size },
            Subject::Prompt { text } | Subject::Answer { text } => Self::Text(text.to_owned()),
            Subject::ToolCall { tool, arguments } => {
                Self::Call { tool: tool.to_owned(), arguments: arguments.clone() }
            }
            Subject::ToolOutput { tool, output } => {
                Self::Output { tool: tool.to_owned(), output: output.to_owned() }
            }
        }
    }
}

impl Seen {
    fn table(self, lua: &Lua) -> mlua::Result<Value> {
        let table = lua.create_table()?;
        match self {
            Self::Input { name, size } => {
                table.raw_set("name", name)?;
                table.raw_set("size", size)?;
            }
            Self::Text(text) => table.raw_set("text", text)?,
            Self::Call { tool, arguments } => {
                table.raw_set("tool", tool)?;
                table.raw_set("arguments", lua.to_value(&arguments)?)?;
            }
            Self::Output { tool, output } => {
                table.raw_set("tool", tool)?;
                table.raw_set("output", output)?;
            }
        }
        Ok(Value::Table(table))
    }
}

#[derive(Debug)]
struct HookValidate {
    script: Script,
    hook: Hook,
}

/// More findings than this help nobody repair anything.
const MOST_FINDINGS: usize = 1_000;

#[async_trait]
impl Validate for HookValidate {
    async fn validate(&self, artifacts: &[Artifact], run: &RunView) -> Result<Vec<Finding>> {
        let artifacts = artifacts.to_vec();
        let declared = self.script.0.outputs.clone();
        let run = Arc::new(run.clone());
        let found = self
            .script
            .call(self.hook, move |lua, function| {
                let artifacts = view::artifacts(lua, artifacts, declared)?;
                let value: Value = function.call((artifacts, view::Run(run)))?;
                findings(&value)
            })
            .await?;
        found.map_err(|what| {
            let message = format!("`validate` returned {what}, and must return findings");
            self.script
                .nonsense(self.hook, "hook::bad_finding", &message)
                .help("return expect.fail(...), a list of them, or nothing when all is well")
        })
    }
}

/// Nothing, one finding, or a list; the error is what was returned instead.
fn findings(value: &Value) -> mlua::Result<Result<Vec<Finding>, String>> {
    Ok(match (value, Thing::of(value)) {
        (Value::Nil, _) => Ok(Vec::new()),
        (_, Some(Thing::Finding(finding))) => Ok(vec![finding]),
        (Value::Table(list), _) => {
            let mut findings = Vec::new();
            for item in list.sequence_values::<Value>().take(MOST_FINDINGS) {
                let item = item?;
                match Thing::of(&item) {
                    Some(Thing::Finding(finding)) => findings.push(finding),
                    _ => return Ok(Err(format!("a list with {}", value::describe(&item)))),
                }
            }
            if findings.is_empty() && !list.is_empty() {
                return Ok(Err("a table without findings".into()));
            }
            Ok(findings)
        }
        (other, _) => Err(value::describe(other)),
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Mutex;
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use crate::config::{Config, Project};
    use crate::script::files::Files;

    /// A script whose function is stuck in Rust, where no limit reaches it, until the sender is dropped.
    fn stuck() -> (Script, Hook, mpsc::Sender<()>) {
        let project = Project { root: PathBuf::from("."), config: Config::default() };
        let (lua, host) = vm::new(&project, Files::disk(&project.root)).expect("a state");
        let (release, held) = mpsc::channel::<()>();
        let held = Mutex::new(held);
        let function = lua.create_function(move |_, ()| {
            let _ = held.lock().map(|held| held.recv());
            Ok(())
        });
        let hook = host.keep(function.expect("a function"));
        let limits = Limits { instructions: 1_000, wall: Duration::from_millis(10) };
        (Script::limited(lua, host, Vec::new(), limits), hook, release)
    }

    async fn call(script: &Script, hook: Hook) -> Result<()> {
        script.call(hook, |_, function| function.call::<()>(())).await
    }

    #[tokio::test]
    async fn a_function_that_no_limit_reaches_is_left_behind() {
        let (script, hook, release) = stuck();
        let late = call(&script, hook).await.expect_err("it does not come back");
        assert_eq!(late.code(), "hook::timeout");
        let next = call(&script, hook).await.expect_err("the state is lost");
        assert_eq!(next.code(), "hook::lost");
        drop(release);
    }

    #[tokio::test]
    async fn a_cancelled_call_loses_the_state() {
        let (script, hook, release) = stuck();
        let cancelled = tokio::select! {
            biased;
            _ = call(&script, hook) => false,
            () = tokio::task::yield_now() => true,
        };
        assert!(cancelled);
        let next = call(&script, hook).await.expect_err("the state is lost");
        assert_eq!(next.code(), "hook::lost");
        drop(release);
    }

    #[tokio::test]
    async fn errors_are_found_through_the_chain_of_callbacks() {
        let project = Project { root: PathBuf::from("."), config: Config::default() };
        let (lua, _) = vm::new(&project, Files::disk(&project.root)).expect("a state");
        let function = lua.create_function(|_, ()| -> mlua::Result<()> {
            Err(crate::script::raised::Raised::misuse("from Rust").into())
        });
        lua.globals().set("raise", function.expect("a function")).expect("a global");
        let error = lua
            .load("local function f() raise() end coroutine.wrap(function() local ok, e = pcall(f) error(e) end)()")
            .exec()
            .expect_err("it is raised");
        let raised = error.downcast_ref::<crate::script::raised::Raised>();
        assert_eq!(raised.map(|raised| raised.message.as_str()), Some("from Rust"));
    }
}
