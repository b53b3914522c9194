//! Which outputs come out, whatever takes them out: in path order, and within what all may have together.

use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::{StreamExt as _, stream};

use crate::sandbox::{Caps, Collected, SandboxError};
use crate::workflow::path::WorkspacePath;
use crate::workflow::units::show_size;
use crate::workflow::view::Artifact;

/// What is asked for before what was asked for earlier has come: a question for each file takes longer than small
/// files do.
#[derive(Debug, Clone, Copy)]
pub(in crate::sandbox) struct Ahead {
    /// Files at once.
    files: usize,
    /// Bytes of each: a larger one is taken when its turn has come.
    bytes: u64,
}

impl Ahead {
    /// One after the other.
    pub(in crate::sandbox) const NOTHING: Self = Self { files: 1, bytes: u64::MAX };
    /// For a helper, which answers in the order it is asked. All of it together is little beside what may come out.
    pub(in crate::sandbox) const SOME: Self = Self { files: 32, bytes: 256 << 10 };
}

/// Takes the files at `paths` out with `take`, which gets a path and the bytes that file may have.
pub(in crate::sandbox) async fn collect<Taking>(
    paths: &[WorkspacePath],
    caps: &Caps,
    ahead: Ahead,
    take: impl Fn(WorkspacePath, u64) -> Taking,
) -> Result<Collected, SandboxError>
where
    Taking: Future<Output = Result<Artifact, SandboxError>>,
{
    let mut collected = Collected::default();
    let left = AtomicU64::new(caps.total);
    let allowed = || caps.file.min(left.load(Ordering::Relaxed));
    let mut sorted = paths.to_vec();
    sorted.sort();
    let early = sorted.into_iter().map(|path| {
        let limit = allowed().min(ahead.bytes);
        let taking = take(path.clone(), limit);
        async move { (path, limit, taking.await) }
    });
    let mut early = std::pin::pin!(stream::iter(early).buffered(ahead.files));
    while let Some((path, limit, outcome)) = early.next().await {
        let outcome = match outcome {
            Err(SandboxError::Refused(..)) if limit != allowed() => take(path, allowed()).await,
            Ok(artifact) if artifact.size > allowed() => Err(too_much(artifact, allowed())),
            other => other,
        };
        match outcome {
            Ok(artifact) => {
                left.fetch_sub(artifact.size, Ordering::Relaxed);
                collected.artifacts.push(artifact);
            }
            // A missing file is for the checks to find.
            Err(SandboxError::NotFound(_)) => {}
            Err(SandboxError::Refused(path, why)) if allowed() < caps.file => {
                let total = show_size(caps.total);
                collected.refused.push((path, format!("{why} (all outputs together may have {total})")));
            }
            Err(SandboxError::Refused(path, why)) => collected.refused.push((path, why)),
            Err(error) => return Err(error),
        }
    }
    Ok(collected)
}

/// What came out before it was known that it may not.
fn too_much(artifact: Artifact, allowed: u64) -> SandboxError {
    // Nobody looks at what is not among the artifacts, and the run's folder goes away with it.
    let _ = std::fs::remove_file(&artifact.file);
    let why = format!("has {}, and at most {} are taken", show_size(artifact.size), show_size(allowed));
    SandboxError::Refused(artifact.path, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::id::Digest;

    /// Files of these sizes, each taken when its size is within the limit.
    async fn taken(sizes: &[u64], caps: Caps, ahead: Ahead) -> (Vec<String>, Vec<String>) {
        let path = |number: usize| WorkspacePath::parse(&format!("{number}")).unwrap();
        let paths: Vec<WorkspacePath> = (0..sizes.len()).map(path).collect();
        let collected = collect(&paths, &caps, ahead, async |path, limit| {
            let size = sizes[path.as_str().parse::<usize>().unwrap()];
            if size > limit {
                let why = format!("has {}, and at most {} are taken", show_size(size), show_size(limit));
                return Err(SandboxError::Refused(path, why));
            }
            let file = std::path::PathBuf::from("/nowhere/at/all");
            Ok(Artifact { path, file, size, digest: Digest::of("") })
        });
        let collected = collected.await.unwrap();
        let came = collected.artifacts.iter().map(|artifact| artifact.path.to_string()).collect();
        (came, collected.refused.into_iter().map(|(path, why)| format!("{path} {why}")).collect())
    }

    #[tokio::test]
    async fn asking_ahead_changes_nothing_but_the_time() {
        let caps = Caps { file: 400_000, total: 1_000_000 };
        let sizes = [300_000, 1, 500_000, 300_000, 200_000, 300_000, 100_000, 200_000, 50_000];
        let one_by_one = taken(&sizes, caps, Ahead::NOTHING).await;
        assert_eq!(one_by_one.0, ["0", "1", "3", "4", "6", "8"]);
        assert_eq!(one_by_one.1.len(), 3);
        assert_eq!(taken(&sizes, caps, Ahead::SOME).await, one_by_one);
        let quick = Ahead { files: 4, bytes: u64::MAX };
        assert_eq!(taken(&sizes, caps, quick).await, one_by_one);
    }
}
