//! Files into the workspace.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bollard::query_parameters::UploadToContainerOptionsBuilder;

use crate::sandbox::docker::archive::{Known, Member, Whose, stream_checked};
use crate::sandbox::docker::container::{Container, WORKSPACE};
use crate::sandbox::docker::errors::words;
use crate::sandbox::docker::first::Hands;
use crate::sandbox::{Command, Placed, Placement, SandboxError, USUAL_MODE, no_room};
use crate::workflow::manifest::Access;
use crate::workflow::mode::Mode;
use crate::workflow::path::WorkspacePath;

/// A move within the workspace takes no time; a full engine may.
const MOVE: Duration = Duration::from_secs(30);

impl Container {
    /// The first call fills the empty workspace. Later ones come from the agent, and are carried out with its rights:
    /// the engine writes as root and would overwrite what the agent may not, or follow a link it planted.
    pub(super) async fn place(&self, files: Vec<Placement>) -> Result<Placed, SandboxError> {
        let all = files.len();
        let files = self.sent.changed(files);
        let mut placed = Placed { unchanged: (all - files.len()) as u64, ..Placed::default() };
        for file in &files {
            placed.files += 1;
            placed.bytes += file.body.size().map_err(|why| SandboxError::Refused(file.path.clone(), why))?;
        }
        if !self.filled.swap(true, Ordering::AcqRel) {
            self.sent.note(&files);
            self.upload(members(files)).await?;
            return Ok(placed);
        }
        match &self.hands {
            Hands::Helper(client) => client.write_all(files).await?,
            Hands::Exec => {
                for file in files {
                    self.move_in(file).await?;
                }
            }
        }
        Ok(placed)
    }

    async fn upload(&self, members: Vec<Known>) -> Result<(), SandboxError> {
        if members.is_empty() {
            return Ok(());
        }
        let options = UploadToContainerOptionsBuilder::default().path(WORKSPACE).build();
        let body = bollard::body_try_stream(stream_checked(members));
        match self.engine.client.upload_to_container(&self.id, Some(options), body).await {
            Ok(()) => Ok(()),
            Err(error) if words(&error).contains("no space left") => Err(SandboxError::Engine(no_room())),
            Err(error) => Err(self.failed("place files in the workspace", error).await),
        }
    }

    async fn move_in(&self, file: Placement) -> Result<(), SandboxError> {
        /// `mv -T` replaces a link instead of following it, and never moves into a folder.
        const MOVE_IN: &str = r#"mkdir -p -- "$(dirname -- "$2")" && mv -f -T -- "$1" "$2"; code=$?; rm -f -- "$1"; exit $code"#;
        let staged = format!(".staged-{:016x}", fastrand::u64(..));
        let mode = file.mode.map_or(USUAL_MODE, Mode::bits);
        let member = Member { path: staged.clone(), body: Some(file.body), mode, of: Whose::Agent };
        self.upload(vec![(member, file.digest)]).await?;
        let argv = ["sh", "-c", MOVE_IN, "sh", &staged, file.path.as_str()].map(str::to_owned).to_vec();
        let moved = self.execute(&Command { argv, timeout: MOVE }).await?;
        if moved.exit == Some(0) {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&moved.output.head);
        let reason = said.lines().next().unwrap_or_default().rsplit(": ").next().unwrap_or_default();
        Err(SandboxError::Refused(file.path, format!("cannot be written: {reason}")))
    }
}

/// The files with the folders above them. A folder of nothing but read-only files is itself read-only; one that the
/// agent shares is sticky, so that it can add and not take away.
fn members(files: Vec<Placement>) -> Vec<Known> {
    let mut folders: BTreeMap<String, (bool, bool)> = BTreeMap::new();
    for file in &files {
        for parent in file.path.parents() {
            let (read_only, writable) = folders.entry(parent.to_owned()).or_default();
            *read_only |= file.access == Access::ReadOnly;
            *writable |= file.access == Access::ReadWrite;
        }
    }
    let folders = folders.into_iter().map(|(path, holds)| {
        let (mode, of) = match holds {
            (true, false) => (0o555, Whose::Root),
            (true, true) => (0o1777, Whose::Root),
            (false, _) => (0o755, Whose::Agent),
        };
        (Member { path, body: None, mode, of }, None)
    });
    let mut members: Vec<Known> = folders.collect();
    members.extend(files.into_iter().map(|file| {
        let mode = file.mode.map_or(USUAL_MODE, Mode::bits);
        let (mode, of) = match file.access {
            Access::ReadOnly => (mode & !0o222, Whose::Root),
            Access::ReadWrite => (mode, Whose::Agent),
        };
        (Member { path: plain(&file.path), body: Some(file.body), mode, of }, file.digest)
    }));
    members
}

fn plain(path: &WorkspacePath) -> String {
    path.as_str().trim_end_matches('/').to_owned()
}
