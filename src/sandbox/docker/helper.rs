//! The program that runs inside containers, as it is embedded.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::sandbox::{Body, Command, Placement, Sandbox, SandboxError};
use crate::workflow::manifest::Access;
use crate::workflow::path::WorkspacePath;

/// Linked statically, so that it runs in any image.
const HELPER: &[u8] = include_bytes!(env!("TIDEMILL_HELPER"));
/// Where it is put for the time of the probes.
const NAME: &str = ".tidemill-probe";
/// Making a file executable takes no time; a full engine may.
const CHANGE: Duration = Duration::from_secs(30);

/// Puts the helper into the sandbox, to be run as the agent; gives its path there.
pub async fn place_helper(sandbox: &Arc<dyn Sandbox>) -> Result<String, SandboxError> {
    let path = WorkspacePath::parse(NAME).map_err(|why| SandboxError::Gone(why.to_owned()))?;
    let body = Body::Bytes(Bytes::from_static(HELPER));
    sandbox.put(vec![Placement { path, body, access: Access::ReadWrite }]).await?;
    let argv = ["chmod", "0755", NAME].map(str::to_owned).to_vec();
    sandbox.exec(&Command { argv, timeout: CHANGE }).await?;
    Ok(format!("/workspace/{NAME}"))
}
