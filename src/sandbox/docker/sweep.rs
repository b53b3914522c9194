//! Removing what dead processes of ours left on the engine.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

use bollard::models::ContainerSummary;
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListNetworksOptionsBuilder, ListVolumesOptionsBuilder,
    RemoveContainerOptionsBuilder, RemoveVolumeOptionsBuilder,
};

use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::RunId;
use crate::owner::{Life, Owner};
use crate::sandbox::Awaited;
use crate::sandbox::docker::errors::{explain, is_missing};
use crate::sandbox::docker::state::{Standing, standing};
use crate::sandbox::docker::{Docker, OWNER_LABEL, RUN_LABEL, STATE_LABEL};

/// How often what is in use is tried again: with [`PAUSE`], as long as an engine takes to remove a container.
pub(super) const PATIENCE: usize = 40;
pub(super) const PAUSE: Duration = Duration::from_millis(100);

impl Docker {
    /// Removes containers, then volumes and networks, whose owner is dead. Gives how many.
    pub(super) async fn sweep_dead(&self) -> Result<usize> {
        let filters: HashMap<String, Vec<String>> = [("label".to_owned(), vec![RUN_LABEL.to_owned()])].into();
        let mut swept = 0;
        let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
        let containers = self
            .client
            .list_containers(Some(options))
            .await
            .map_err(|error| explain("list containers", error))?;
        // Names of containers that wait for their runs, which are those of their volumes.
        let mut spared = HashSet::new();
        for container in containers {
            if !is_dead(container.labels.as_ref()) {
                continue;
            }
            let Some(id) = &container.id else { continue };
            match awaited(&container) {
                // Looked at anew: it may have begun to run since the list was made.
                Some(name) if self.still_runs(id).await => drop(spared.insert(name)),
                Some(_) | None => swept += usize::from(self.remove_container(id).await?),
            }
        }
        let options = ListVolumesOptionsBuilder::default().filters(&filters).build();
        let volumes =
            self.client.list_volumes(Some(options)).await.map_err(|error| explain("list volumes", error))?;
        for volume in volumes.volumes.unwrap_or_default() {
            if is_dead(Some(&volume.labels)) && !spared.contains(&volume.name) {
                swept += usize::from(self.remove_volume(&volume.name).await? == Removal::Done);
            }
        }
        let options = ListNetworksOptionsBuilder::default().filters(&filters).build();
        let networks = self
            .client
            .list_networks(Some(options))
            .await
            .map_err(|error| explain("list networks", error))?;
        for network in networks {
            if let (Some(name), true) = (network.name, is_dead(network.labels.as_ref())) {
                swept += usize::from(self.remove_network(&name).await?);
            }
        }
        Ok(swept)
    }

    /// Whether a container can be gone on with; one that has ended, as all have after a reboot, by nobody. One the
    /// engine does not speak of is left for the next sweep.
    async fn still_runs(&self, id: &str) -> bool {
        !matches!(standing(&self.client, id).await, Ok(Standing::Gone(_)))
    }

    /// How many containers and volumes carry the run's label.
    pub async fn count_of(&self, run: &RunId) -> Result<usize> {
        let filters: HashMap<String, Vec<String>> =
            [("label".to_owned(), vec![format!("{RUN_LABEL}={run}")])].into();
        let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
        let containers = self.client.list_containers(Some(options)).await;
        let containers = containers.map_err(|error| explain("list containers", error))?;
        let options = ListVolumesOptionsBuilder::default().filters(&filters).build();
        let volumes = self.client.list_volumes(Some(options)).await;
        let volumes = volumes.map_err(|error| explain("list volumes", error))?;
        Ok(containers.len() + volumes.volumes.unwrap_or_default().len())
    }

    /// Removes a container at once, running or not. Whether it was there.
    pub(super) async fn remove_container(&self, id: &str) -> Result<bool> {
        let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
        match self.client.remove_container(id, Some(options)).await {
            Ok(()) => Ok(true),
            Err(error) if is_missing(&error) || is_being_removed(&error) => Ok(false),
            Err(error) => Err(explain("remove the container", error)),
        }
    }

    /// Removes a volume.
    pub(super) async fn remove_volume(&self, name: &str) -> Result<Removal> {
        let options = RemoveVolumeOptionsBuilder::default().force(true).build();
        match self.client.remove_volume(name, Some(options)).await {
            Ok(()) => Ok(Removal::Done),
            Err(error) if is_missing(&error) => Ok(Removal::Absent),
            Err(error) if is_being_removed(&error) => Ok(Removal::Busy),
            Err(error) => Err(explain("remove the workspace", error)),
        }
    }

    /// Removes a container with its workspace, whoever else may be removing it at the same time.
    pub(super) async fn remove_both(&self, container: &str, volume: &str) -> Result<()> {
        for _ in 0..PATIENCE {
            self.remove_container(container).await?;
            if self.remove_volume(volume).await? != Removal::Busy {
                return Ok(());
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(Diagnostic::new("sandbox::busy", format!("the workspace {volume} is still in use"))
            .help("the next start of tidemill removes it; `docker volume rm` does so by hand"))
    }
}

/// What became of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Removal {
    /// Removed.
    Done,
    /// It was not there.
    Absent,
    /// A container still uses it, most likely one that is being removed.
    Busy,
}

/// Somebody else removes it at this moment, which comes to the same.
fn is_being_removed(error: &bollard::errors::Error) -> bool {
    super::errors::status(error) == Some(409)
}

/// The name of a container that waits for a run of its project.
fn awaited(container: &ContainerSummary) -> Option<String> {
    let state = container.labels.as_ref()?.get(STATE_LABEL)?;
    let name = container.names.as_ref()?.first()?.trim_start_matches('/').to_owned();
    Awaited::new(Path::new(state)).run_of(&name).is_some().then_some(name)
}

fn is_dead(labels: Option<&HashMap<String, String>>) -> bool {
    labels
        .and_then(|labels| labels.get(OWNER_LABEL))
        .and_then(|label| Owner::parse(label))
        .is_some_and(|owner| owner.life() == Life::Dead)
}
