//! Declared outputs out of the workspace, hashed while they are written.

use std::io;
use std::path::Path;

use crate::sandbox::collect::{Ahead, collect};
use crate::sandbox::docker::container::Container;
use crate::sandbox::docker::first::Hands;
use crate::sandbox::unpack::{Rules, Unpacker};
use crate::sandbox::{Caps, Collected, SandboxError};
use crate::workflow::path::WorkspacePath;
use crate::workflow::view::Artifact;

/// From so many bytes on the engine's own archive is quicker than the helper's stream, which it chops into pieces.
const LARGE: u64 = 8 << 20;

impl Container {
    pub(super) async fn take_out(
        &self,
        paths: &[WorkspacePath],
        caps: &Caps,
        into: &Path,
    ) -> Result<Collected, SandboxError> {
        let ahead = match &self.hands {
            Hands::Helper(_) => Ahead::SOME,
            Hands::Exec => Ahead::NOTHING,
        };
        collect(paths, caps, ahead, async |path, limit| self.take_one(&path, limit, into).await).await
    }

    async fn take_one(
        &self,
        path: &WorkspacePath,
        limit: u64,
        into: &Path,
    ) -> Result<Artifact, SandboxError> {
        match &self.hands {
            // A small file, asked for ahead: one question, one answer.
            Hands::Helper(client) if limit < LARGE => return client.take(path, limit, into).await,
            Hands::Helper(client) if self.regular(path, limit).await? < LARGE => {
                return client.take(path, limit, into).await;
            }
            Hands::Helper(_) => {}
            Hands::Exec => {
                self.regular(path, limit).await?;
            }
        }
        let (wanted, into) = (path.clone(), into.to_owned());
        self.archive_of(path, move |from| one(from, &wanted, limit, &into)).await
    }
}

/// The one file of an archive, to where it belongs in `into`.
fn one(from: &mut dyn io::Read, wanted: &WorkspacePath, limit: u64, into: &Path) -> Result<Artifact, String> {
    let rules = Rules { file: limit, total: limit, entries: 1, ..Rules::default() };
    let broken = |error: io::Error| format!("cannot be written to the run's folder: {error}");
    let mut unpacker = Unpacker::new(into, rules).map_err(broken)?;
    let (under, _) = wanted.as_str().rsplit_once('/').unwrap_or_default();
    unpacker.archive(from, under).map_err(broken)?;
    let done = unpacker.finish();
    let refusal = done.refused.into_iter().next().map(|refusal| refusal.why);
    let found = done.files.into_iter().find(|file| file.path == *wanted);
    found.ok_or_else(|| {
        refusal.or(done.stopped).unwrap_or_else(|| "changed while it was taken out".to_owned())
    })
}
