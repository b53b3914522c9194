//! What a sandbox looks like from the host, before and after it was attacked.

use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::time::Duration;

use crate::cli::doctor::sandbox::report::Probed;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::isolation::Isolation;
use crate::sandbox::docker::HELPER;
use crate::sandbox::{Caps, Collected, Command, Sandbox};
use crate::workflow::path::WorkspacePath;

/// A command that does next to nothing.
const SHORT: Duration = Duration::from_secs(60);

/// A sandbox that started has been read back already.
pub(super) fn read_back(isolation: &Isolation) -> Probed {
    let Isolation { user, network, runtime, .. } = isolation;
    let found = format!("user {user}, network {network}, runtime {runtime}");
    Probed::new("outside/read-back", "The engine says of the container what it was asked for.", Ok(found))
}

/// A container and a workspace.
const PARTS: usize = 2;

pub(super) fn labelled(count: usize) -> Probed {
    let held =
        if count == PARTS { Ok(format!("{count} things")) } else { Err(format!("{count} of {PARTS}")) };
    Probed::new(
        "outside/labels",
        "All that belongs to a run carries its label, so nothing is forgotten.",
        held,
    )
}

pub(super) fn nothing_left(count: usize) -> Probed {
    let held = if count == 0 { Ok("nothing".to_owned()) } else { Err(format!("{count} things")) };
    Probed::new("outside/nothing-left", "When a run ends, container and workspace are gone.", held)
}

/// After the fork bomb, the memory hog and the full disk.
pub(super) async fn still_there(sandbox: &Arc<dyn Sandbox>) -> Probed {
    let argv = [HELPER, "probe", "one=identity/user"].map(str::to_owned).to_vec();
    let held = match sandbox.exec(&Command { argv, timeout: SHORT }).await {
        Ok(done) if done.exit == Some(0) => Ok("the next command ran".to_owned()),
        Ok(done) => Err(format!("the next command ended with {:?}", done.exit)),
        Err(error) => Err(error.to_string()),
    };
    Probed::new("outside/still-there", "A sandbox that was attacked by a command takes the next one.", held)
}

/// Makes files that should not come out as they are, and takes them out.
pub(super) async fn taken_out(sandbox: &Arc<dyn Sandbox>) -> Result<Vec<Probed>> {
    const MAKE: &str = "echo x > .probe-file && chmod 6777 .probe-file && ln -s /etc/passwd .probe-link";
    let argv = ["sh", "-c", MAKE].map(str::to_owned).to_vec();
    let during = |error: crate::sandbox::SandboxError| error.during("take a file out");
    sandbox.exec(&Command { argv, timeout: SHORT }).await.map_err(during)?;
    let folder = tempfile::tempdir().map_err(|error| {
        Diagnostic::new("doctor::folder", "no temporary folder can be made")
            .cause(error)
            .help("is the disk full?")
    })?;
    let names = [".probe-file", ".probe-link"];
    let paths: Vec<WorkspacePath> =
        names.into_iter().filter_map(|name| WorkspacePath::parse(name).ok()).collect();
    let collected = sandbox.collect(&paths, &Caps::default(), folder.path()).await.map_err(during)?;
    Ok(vec![
        Probed::new(
            "outside/owner",
            "A file that comes out belongs to the user who started Tidemill, and lends nobody its rights.",
            ours(&collected),
        ),
        Probed::new(
            "outside/links",
            "A link does not come out, so it leads nowhere on the host.",
            refused(&collected),
        ),
    ])
}

fn ours(collected: &Collected) -> std::result::Result<String, String> {
    let artifact = collected.artifacts.first().ok_or("no file came out")?;
    let data = std::fs::symlink_metadata(&artifact.file).map_err(|error| error.to_string())?;
    let (owner, mode) = (data.uid(), data.mode() & 0o7777);
    let found = format!("user {owner}, mode {mode:04o}");
    let me = rustix::process::geteuid().as_raw();
    if owner == me && mode & 0o7000 == 0 && mode & 0o022 == 0 { Ok(found) } else { Err(found) }
}

fn refused(collected: &Collected) -> std::result::Result<String, String> {
    if collected.artifacts.len() > 1 {
        return Err("it came out".to_owned());
    }
    let refusal = collected.refused.first().ok_or("it was not refused")?;
    Ok(refusal.1.clone())
}
