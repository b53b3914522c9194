//! The tools an agent can use, and the exact words it is told when it uses them wrongly.

pub mod read_file;
pub mod shell;
pub mod write_file;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::diagnostic::Result;
use crate::event::{ToolCall, ToolOutcome};
use crate::model::{Finish, ToolSpec};
use crate::sandbox::helper::Held;
use crate::sandbox::{Sandbox, SandboxError};

/// A tool the model may ask for.
#[async_trait]
pub trait Tool: Send + Sync + fmt::Debug {
    /// What the model is told about it.
    fn spec(&self) -> ToolSpec;

    /// Whether the arguments fit; the error is told to the model.
    fn check(&self, arguments: &Value) -> Result<(), String>;

    /// What becomes of a call whose host ended while it ran.
    fn class(&self) -> Class;

    /// Whether it can change the workspace.
    fn effect(&self) -> Effect {
        Effect::Changes
    }

    /// Carries it out within the time it is left. An error ends the run; what the model can mend is an outcome.
    async fn call(&self, arguments: &Value, given: Given) -> Result<Told>;
}

/// What a call is given besides its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Given {
    /// Time that is left.
    pub left: Duration,
    /// The id of its command in the sandbox, for a call that is [`Class::Sandboxed`].
    pub process: Option<u32>,
}

/// What becomes of a call that had begun when its host ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// It goes on in the sandbox without a host, and is followed again; when the sandbox is gone as well, the model is
    /// told that it was interrupted.
    Sandboxed,
    /// It may have had effects nobody can see from here: a person must look before it is done again.
    Once,
    /// It is carried out again, which comes to the same.
    Repeatable,
}

/// What a call does to the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It looks.
    Looks,
    /// It may change it.
    Changes,
}

/// What a tool tells the model.
#[derive(Debug)]
pub struct Told {
    /// Whether it did what was asked.
    pub outcome: ToolOutcome,
    /// The words.
    pub output: String,
    /// All it printed, when `output` is cut.
    pub whole: Option<NamedTempFile>,
    /// Keeps it in the sandbox until its end is recorded.
    pub held: Option<Held>,
}

impl Told {
    /// An outcome in words.
    pub fn of(outcome: ToolOutcome, output: String) -> Self {
        Self { outcome, output, whole: None, held: None }
    }
}

/// The tools of one run.
#[derive(Debug)]
pub struct Toolbox {
    tools: Vec<Box<dyn Tool>>,
    specs: Vec<ToolSpec>,
}

impl Toolbox {
    /// The given tools, in this order.
    pub fn new(tools: Vec<Box<dyn Tool>>) -> Self {
        let specs = tools.iter().map(|tool| tool.spec()).collect();
        Self { tools, specs }
    }

    /// The tools that work in a sandbox: `shell`, `read_file`, `write_file`.
    pub fn sandboxed(sandbox: &Arc<dyn Sandbox>, longest: Duration) -> Self {
        Self::new(vec![
            Box::new(shell::Shell::new(sandbox.clone(), longest)),
            Box::new(read_file::ReadFile::new(sandbox.clone())),
            Box::new(write_file::WriteFile::new(sandbox.clone())),
        ])
    }

    /// The tools that work without commands: `read_file`, `write_file`.
    pub fn files(sandbox: &Arc<dyn Sandbox>) -> Self {
        Self::new(vec![
            Box::new(read_file::ReadFile::new(sandbox.clone())),
            Box::new(write_file::WriteFile::new(sandbox.clone())),
        ])
    }

    /// What the model is told about them.
    pub fn specs(&self) -> &[ToolSpec] {
        &self.specs
    }

    /// The arguments of a call as JSON that fits the tool, or what to tell the model.
    pub fn arguments(&self, call: &ToolCall, finish: Finish) -> Result<Value, String> {
        let tool = self.find(&call.tool).ok_or_else(|| {
            let names: Vec<_> = self.specs.iter().map(|spec| format!("`{}`", spec.name)).collect();
            format!("There is no tool `{}`. The tools are {}.", call.tool, names.join(", "))
        })?;
        // Some servers send nothing at all for a call without arguments.
        let text = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
        let arguments: Value = serde_json::from_str(text).map_err(|error| {
            let cut = match finish {
                Finish::Length => " They were cut at the answer's length limit: ask for less at once.",
                _ => "",
            };
            format!("The arguments of `{}` are not valid JSON: {error}.{cut}", call.tool)
        })?;
        tool.check(&arguments)
            .map_err(|complaint| format!("The arguments of `{}` do not fit: {complaint}.", call.tool))?;
        Ok(arguments)
    }

    /// What becomes of a call whose host ended. One of a tool that does not exist is answered again.
    pub fn class(&self, tool: &str) -> Class {
        self.find(tool).map_or(Class::Repeatable, Tool::class)
    }

    /// Whether a call can change the workspace.
    pub fn effect(&self, tool: &str) -> Effect {
        self.find(tool).map_or(Effect::Looks, Tool::effect)
    }

    /// Carries a call out. The arguments come from [`Toolbox::arguments`].
    pub async fn call(&self, tool: &str, arguments: &Value, given: Given) -> Result<Told> {
        match self.find(tool) {
            Some(tool) => tool.call(arguments, given).await,
            None => Ok(Told::of(ToolOutcome::Failed, format!("There is no tool `{tool}`."))),
        }
    }

    fn find(&self, name: &str) -> Option<&dyn Tool> {
        let place = self.specs.iter().position(|spec| spec.name == name)?;
        Some(self.tools[place].as_ref())
    }
}

/// A strict schema: an object with these properties, all required, no others.
fn object(properties: &Value) -> Value {
    let required: Vec<String> =
        properties.as_object().map(|map| map.keys().cloned().collect()).unwrap_or_default();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn parse<T: DeserializeOwned>(arguments: &Value) -> Result<T, String> {
    T::deserialize(arguments).map_err(|error| error.to_string())
}

/// The sandbox's complaint for the model, or the error that ends the run.
fn told_or_failed(error: SandboxError) -> Result<Told> {
    match error {
        SandboxError::NotFound(_) | SandboxError::Refused(..) | SandboxError::Unfit(_) => {
            Ok(Told::of(ToolOutcome::Failed, format!("Failed: {error}.")))
        }
        other => Err(other.during("carry out a tool call")),
    }
}
