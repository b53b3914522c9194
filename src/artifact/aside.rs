//! Files of a run that publishes nothing are kept with what was found wrong: nothing is lost.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::artifact::copy::{copy, io_error, remove, write_new};
use crate::diagnostic::{Diagnostic, Result};
use crate::event::finding::Finding;
use crate::event::input::printable;
use crate::workflow::view::Artifact;

/// Keeps the artifacts under `folder/files/`, with `findings.json` and a readable `findings.txt` beside them. What an
/// earlier call kept there is replaced once the new files stand. Blocking.
pub fn keep_aside(folder: &Path, artifacts: &[Artifact], findings: &[Finding]) -> Result<()> {
    let staging = folder.with_added_extension("new");
    remove(&staging)?;
    let files = staging.join("files");
    make(&files)?;
    for artifact in artifacts {
        let target = files.join(artifact.path.as_str());
        target.parent().map_or(Ok(()), make)?;
        // Kept to be looked at, whatever it is by now.
        copy(artifact, &target)?;
    }
    let json = serde_json::to_string_pretty(findings).map_err(|error| {
        Diagnostic::new("artifact::findings", "the findings cannot be written as JSON").cause(error)
    })?;
    write_new(&staging.join("findings.json"), (json + "\n").as_bytes())?;
    write_new(&staging.join("findings.txt"), readable(findings).as_bytes())?;
    remove(folder)?;
    fs::rename(&staging, folder).map_err(|error| io_error(&error, folder))
}

fn make(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).map_err(|error| io_error(&error, folder))
}

/// One finding per line, numbered; nothing in it can move a terminal's cursor.
fn readable(findings: &[Finding]) -> String {
    let mut text = String::new();
    for (index, finding) in findings.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}. {}", index + 1, printable(finding.to_string().as_ref()));
    }
    if findings.is_empty() {
        text.push_str("nothing was found wrong with these files\n");
    }
    text
}
