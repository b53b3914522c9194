//! Declared outputs out of the workspace, hashed while they are written.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::event::id::{Digest, copy_hashed};
use crate::sandbox::docker::container::Container;
use crate::sandbox::docker::first::Hands;
use crate::sandbox::{Caps, Collected, SandboxError};
use crate::workflow::path::WorkspacePath;
use crate::workflow::units::show_size;
use crate::workflow::view::Artifact;

impl Container {
    pub(super) async fn take_out(
        &self,
        paths: &[WorkspacePath],
        caps: &Caps,
        into: &Path,
    ) -> Result<Collected, SandboxError> {
        let mut collected = Collected::default();
        let mut left = caps.total;
        let mut sorted = paths.to_vec();
        sorted.sort();
        for path in sorted {
            match self.take_one(&path, caps.file.min(left), into).await {
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

    async fn take_one(
        &self,
        path: &WorkspacePath,
        limit: u64,
        into: &Path,
    ) -> Result<Artifact, SandboxError> {
        if let Hands::Helper(client) = &self.hands {
            return client.take(path, limit, into).await;
        }
        self.regular(path, limit).await?;
        let file = into.join(path.as_str());
        let target = file.clone();
        let (digest, size) = self.copy_out(path, limit, move |from| write(from, &target)).await?;
        Ok(Artifact { path: path.clone(), file, size, digest })
    }
}

/// Writes a new file; the folder is ours, so nothing can stand there before.
fn write(from: &mut dyn io::Read, target: &PathBuf) -> io::Result<(Digest, u64)> {
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut to = OpenOptions::new().write(true).create_new(true).open(target)?;
    copy_hashed(from, &mut to)
}
