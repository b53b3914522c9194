//! Whether a container still runs, and why not.

use bollard::Docker as Engine;
use bollard::errors::Error;
use bollard::models::ContainerStateStatusEnum;

use crate::sandbox::docker::errors::is_missing;

/// Why a container does not run; nothing when it does.
pub(super) async fn why_gone(client: &Engine, id: &str) -> Result<Option<String>, Error> {
    let container = match client.inspect_container(id, None).await {
        Err(error) if is_missing(&error) => return Ok(Some("its container was removed".to_owned())),
        other => other?,
    };
    let Some(state) = container.state else {
        return Ok(None);
    };
    if state.running == Some(true) {
        return Ok(None);
    }
    let removed =
        matches!(state.status, Some(ContainerStateStatusEnum::REMOVING | ContainerStateStatusEnum::DEAD));
    Ok(Some(if removed {
        "its container was removed".to_owned()
    } else if state.oom_killed == Some(true) {
        "its container ran out of memory".to_owned()
    } else {
        format!("its container ended with exit code {}", state.exit_code.unwrap_or_default())
    }))
}
