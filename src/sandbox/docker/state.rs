//! Whether a container still runs, and why not.

use bollard::Docker as Engine;
use bollard::errors::Error;
use bollard::models::{ContainerInspectResponse, ContainerState, ContainerStateStatusEnum};

use crate::sandbox::docker::errors::is_missing;
use crate::workflow::units::show_size;

/// How a container stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// It runs.
    Runs,
    /// Somebody has stopped its processes and can let them go on.
    Paused,
    /// It does not run any more, for this reason.
    Gone(String),
}

/// Asks the engine.
pub(super) async fn standing(client: &Engine, id: &str) -> Result<Standing, Error> {
    let container = match client.inspect_container(id, None).await {
        Err(error) if is_missing(&error) => {
            return Ok(Standing::Gone("its container was removed".to_owned()));
        }
        other => other?,
    };
    Ok(match &container.state {
        Some(state) if state.paused == Some(true) => Standing::Paused,
        Some(state) if state.running != Some(true) => Standing::Gone(why(&container, state)),
        _ => Standing::Runs,
    })
}

/// Why a container does not run; nothing when it does.
pub(super) async fn why_gone(client: &Engine, id: &str) -> Result<Option<String>, Error> {
    Ok(match standing(client, id).await? {
        Standing::Gone(reason) => Some(reason),
        Standing::Runs | Standing::Paused => None,
    })
}

fn why(container: &ContainerInspectResponse, state: &ContainerState) -> String {
    let removed =
        matches!(state.status, Some(ContainerStateStatusEnum::REMOVING | ContainerStateStatusEnum::DEAD));
    if removed {
        "its container was removed".to_owned()
    } else if state.oom_killed == Some(true) {
        let limit = container.host_config.as_ref().and_then(|host| host.memory).unwrap_or_default();
        format!("its container ran out of memory: limits.memory is {}", show_size(limit.unsigned_abs()))
    } else {
        format!("its container ended with exit code {}", state.exit_code.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use bollard::models::HostConfig;

    use super::*;

    #[test]
    fn a_container_without_memory_names_its_limit() {
        let host_config = Some(HostConfig { memory: Some(256_000_000), ..HostConfig::default() });
        let container = ContainerInspectResponse { host_config, ..ContainerInspectResponse::default() };
        let state =
            ContainerState { oom_killed: Some(true), exit_code: Some(137), ..ContainerState::default() };
        assert_eq!(why(&container, &state), "its container ran out of memory: limits.memory is 256.0 MB");
        let state = ContainerState { exit_code: Some(137), ..ContainerState::default() };
        assert_eq!(why(&container, &state), "its container ended with exit code 137");
    }
}
