//! Which outputs come out, whatever takes them out: in path order, and within what all may have together.

use crate::sandbox::{Caps, Collected, SandboxError};
use crate::workflow::path::WorkspacePath;
use crate::workflow::units::show_size;
use crate::workflow::view::Artifact;

/// Takes the files at `paths` out with `take`, which gets a path and the bytes that file may have.
pub(in crate::sandbox) async fn collect<Taking>(
    paths: &[WorkspacePath],
    caps: &Caps,
    take: impl Fn(WorkspacePath, u64) -> Taking,
) -> Result<Collected, SandboxError>
where
    Taking: Future<Output = Result<Artifact, SandboxError>>,
{
    let mut collected = Collected::default();
    let mut left = caps.total;
    let mut sorted = paths.to_vec();
    sorted.sort();
    for path in sorted {
        match take(path, caps.file.min(left)).await {
            Ok(artifact) => {
                left = left.saturating_sub(artifact.size);
                collected.artifacts.push(artifact);
            }
            // A missing file is for the checks to find.
            Err(SandboxError::NotFound(_)) => {}
            Err(SandboxError::Refused(path, why)) if left < caps.file => {
                let total = show_size(caps.total);
                collected.refused.push((path, format!("{why} (all outputs together may have {total})")));
            }
            Err(SandboxError::Refused(path, why)) => collected.refused.push((path, why)),
            Err(error) => return Err(error),
        }
    }
    Ok(collected)
}
