//! `expect.file`: any file, by its size and its first bytes.

use crate::event::finding::Finding;
use crate::workflow::expectation::File;
use crate::workflow::view::Artifact;

/// Everything wrong with a file.
pub(super) fn check(expect: &File, artifact: &Artifact) -> Vec<Finding> {
    let mut findings = Vec::new();
    let least = expect.min_size.unwrap_or(1);
    if artifact.size < least {
        findings.push(
            Finding::new("file.size", "the file is too small")
                .path(artifact.path.as_str())
                .expected(format!("at least {least} bytes"))
                .found(format!("{} bytes", artifact.size)),
        );
    }
    findings
}
