//! What a good artifact is: checks after the agent is done.

mod csv;
mod file;
mod image;
mod json;
mod read;
mod report;
mod text;
mod value;

use std::fmt;

use async_trait::async_trait;

use crate::diagnostic::Result;
use crate::event::finding::Finding;
use crate::workflow::expectation::{Expect, Output};
use crate::workflow::path::WorkspacePath;
use crate::workflow::view::{Artifact, RunView};

/// A check across files that only the script knows; implemented by `script`.
#[async_trait]
pub trait Validate: Send + Sync + fmt::Debug {
    /// Everything it finds wrong. An error is a mistake of the script and ends the run.
    async fn validate(&self, artifacts: &[Artifact], run: &RunView) -> Result<Vec<Finding>>;
}

/// Everything wrong with one artifact. Reads the file: call it where blocking is allowed.
pub fn check(expect: &Expect, artifact: &Artifact) -> Vec<Finding> {
    match expect {
        Expect::Csv(expect) => csv::check(expect, artifact),
        Expect::Json(expect) => json::check(expect, artifact),
        Expect::Image(expect) => image::check(expect, artifact),
        Expect::Text(expect) => text::check(expect, artifact),
        Expect::File(expect) => file::check(expect, artifact),
    }
}

/// Everything wrong with the outputs of a run, by path: files that are missing, files that were
/// refused on their way out, and what [`check`] finds. Reads the files: call it where blocking is allowed.
pub fn check_all(
    outputs: &[Output],
    collected: &[Artifact],
    refused: &[(WorkspacePath, String)],
) -> Vec<Finding> {
    let mut findings: Vec<Finding> = refused.iter().map(|(path, reason)| refusal(path, reason)).collect();
    for output in outputs {
        let path = output.path.as_str();
        if refused.iter().any(|(refused, _)| *refused == output.path) {
            continue;
        }
        if let Some(artifact) = collected.iter().find(|artifact| artifact.path == output.path) {
            findings.extend(check(&output.expect, artifact));
        } else {
            findings.push(
                Finding::new("output.missing", "the file does not exist")
                    .path(path)
                    .expected("a regular file at this path"),
            );
        }
    }
    findings.sort_by(|left, right| left.path.cmp(&right.path));
    findings
}

fn refusal(path: &WorkspacePath, reason: &str) -> Finding {
    Finding::new("output.refused", format!("the file was not taken out of the sandbox: {reason}"))
        .path(path.as_str())
        .expected("a regular file")
}
