//! `write_file`: a text file into the workspace.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::agent::tools::{Class, Given, Told, Tool, object, parse, told_or_failed};
use crate::diagnostic::Result;
use crate::event::ToolOutcome;
use crate::model::ToolSpec;
use crate::sandbox::{Body, Placement, Sandbox};
use crate::workflow::manifest::Access;
use crate::workflow::path::WorkspacePath;
use crate::workflow::units::show_size;

/// Writes text files.
#[derive(Debug)]
pub struct WriteFile {
    sandbox: Arc<dyn Sandbox>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    content: String,
}

impl Arguments {
    fn place(arguments: &Value) -> Result<(WorkspacePath, String), String> {
        let arguments: Self = parse(arguments)?;
        let path = WorkspacePath::parse(&arguments.path).map_err(|why| format!("`path` {why}"))?;
        if path.is_folder() {
            return Err("`path` names a folder".to_owned());
        }
        Ok((path, arguments.content))
    }
}

impl WriteFile {
    /// In this sandbox.
    pub fn new(sandbox: Arc<dyn Sandbox>) -> Self {
        Self { sandbox }
    }
}

#[async_trait]
impl Tool for WriteFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "write_file".to_owned(),
            description:
                "Writes a text file into the workspace, replacing what stands there. Folders are made. Files \
                          that were given to you cannot be replaced."
                    .to_owned(),
            parameters: object(&json!({
                "path": { "type": "string", "description": "Path relative to /workspace." },
                "content": { "type": "string", "description": "The whole text." },
            })),
        }
    }

    fn check(&self, arguments: &Value) -> Result<(), String> {
        Arguments::place(arguments).map(drop)
    }

    fn class(&self) -> Class {
        Class::Repeatable
    }

    async fn call(&self, arguments: &Value, _: Given) -> Result<Told> {
        let (path, content) = match Arguments::place(arguments) {
            Ok(place) => place,
            Err(complaint) => return Ok(Told::of(ToolOutcome::Failed, complaint)),
        };
        let size = show_size(content.len() as u64);
        let body = Body::Bytes(content.into_bytes().into());
        let file = Placement::new(path.clone(), body, Access::ReadWrite);
        match self.sandbox.put(vec![file]).await {
            Ok(_) => Ok(Told::of(ToolOutcome::Done, format!("Wrote {size} to {path}."))),
            Err(error) => told_or_failed(error),
        }
    }
}
