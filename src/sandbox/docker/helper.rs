//! The helper in a container: a read-only volume that holds it, made once, and the stream to it.

use std::collections::HashMap;
use std::io;

use async_trait::async_trait;
use bollard::Docker as Engine;
use bollard::container::LogOutput;
use bollard::models::{ContainerCreateBody, HostConfig, Mount, MountType, VolumeCreateRequest};
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, ContainerArchiveInfoOptionsBuilder, ListVolumesOptionsBuilder,
    UploadToContainerOptionsBuilder,
};
use bytes::Bytes;
use futures_util::StreamExt as _;

use crate::diagnostic::{Diagnostic, Result};
use crate::sandbox::docker::archive::{Member, Whose, stream};
use crate::sandbox::docker::errors::{explain, is_missing, not_created};
use crate::sandbox::docker::state::{Standing, standing};
use crate::sandbox::docker::sweep::Removal;
use crate::sandbox::docker::{Docker, HELPER_LABEL, OWNER_LABEL, RUN_LABEL};
use crate::sandbox::helper::{DIGEST, Ends, Link, PAUSED, PROGRAM};
use crate::sandbox::{Body, SandboxError};

/// The helper as a command of the sandbox.
pub const HELPER: &str = "/.tidemill/helper";
/// Where the volume is mounted.
pub(super) const FOLDER: &str = "/.tidemill";
/// The helper in it.
pub(super) const FILE: &str = "helper";

impl Docker {
    /// The volume that holds the helper, filled when it is not; nothing where the helper cannot run on this engine's
    /// machine. `image` is any image of the engine: a volume is filled through a container.
    pub(super) async fn helper_volume(&self, image: &str) -> Result<Option<String>> {
        if PROGRAM.is_empty() || self.architecture != std::env::consts::ARCH {
            return Ok(None);
        }
        let mut volume = self.helper.lock().await;
        if volume.is_none() {
            *volume = Some(self.fill_volume(image).await?);
        }
        Ok(volume.clone())
    }

    /// The volume was not what it should be: it is looked at again next time.
    pub(super) async fn doubt_helper(&self) {
        *self.helper.lock().await = None;
    }

    /// Removes volumes with other versions of the helper, unless a container uses them. Gives how many.
    pub async fn remove_old_helpers(&self) -> Result<usize> {
        let filters: HashMap<String, Vec<String>> =
            [("label".to_owned(), vec![HELPER_LABEL.to_owned()])].into();
        let options = ListVolumesOptionsBuilder::default().filters(&filters).build();
        let volumes = self.client.list_volumes(Some(options)).await;
        let volumes = volumes.map_err(|error| explain("list volumes", error))?.volumes.unwrap_or_default();
        let mut removed = 0;
        for volume in volumes.into_iter().filter(|volume| volume.name != volume_name()) {
            removed += usize::from(self.remove_volume(&volume.name).await? == Removal::Done);
        }
        Ok(removed)
    }

    async fn fill_volume(&self, image: &str) -> Result<String> {
        let name = volume_name();
        let request = VolumeCreateRequest {
            name: Some(name.clone()),
            driver: Some("local".to_owned()),
            labels: Some([(HELPER_LABEL.to_owned(), DIGEST.to_string())].into()),
            ..VolumeCreateRequest::default()
        };
        let made = self.client.create_volume(request).await;
        made.map_err(|error| explain("make the helper's volume", error))?;
        // It never runs. It belongs to this process like a run's, so that a sweep finds it.
        let labels: HashMap<String, String> =
            [(RUN_LABEL.to_owned(), "helper".to_owned()), (OWNER_LABEL.to_owned(), self.owner.to_string())]
                .into();
        let body = ContainerCreateBody {
            image: Some(image.to_owned()),
            entrypoint: Some(vec![format!("{FOLDER}/{FILE}")]),
            network_disabled: Some(true),
            labels: Some(labels),
            host_config: Some(HostConfig {
                network_mode: Some("none".to_owned()),
                mounts: Some(vec![mount(&name, Access::Write)]),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        };
        let created = self.client.create_container(None, body).await;
        let what = "make a container for the helper's volume";
        let created = created.map_err(|error| not_created(what, image, error))?;
        let filled = self.fill_through(&created.id).await;
        // The error of filling is the one to report; what stays is found by the sweep.
        let removed = self.remove_container(&created.id).await;
        filled?;
        removed?;
        Ok(name)
    }

    async fn fill_through(&self, container: &str) -> Result<()> {
        let options = ContainerArchiveInfoOptionsBuilder::default().path(&format!("{FOLDER}/{FILE}")).build();
        match self.client.get_container_archive_info(container, Some(options)).await {
            Ok(stat) if usize::try_from(stat.size).ok() == Some(PROGRAM.len()) => return Ok(()),
            Ok(_) => {}
            Err(error) if is_missing(&error) => {}
            Err(error) => return Err(explain("look at the helper", error)),
        }
        let body = Some(Body::Bytes(Bytes::from_static(PROGRAM)));
        let member = Member { path: FILE.to_owned(), body, mode: 0o555, of: Whose::Root };
        let options = UploadToContainerOptionsBuilder::default().path(FOLDER).build();
        let body = bollard::body_try_stream(stream(vec![member]));
        let uploaded = self.client.upload_to_container(container, Some(options), body).await;
        uploaded.map_err(|error| explain("place the helper in its volume", error))
    }
}

/// The volume with this version.
fn volume_name() -> String {
    format!("tidemill-helper-{}", DIGEST.short())
}

/// What a container may do with the helper's volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

/// The helper's volume as a sandbox has it.
pub(super) fn read_only(volume: &str) -> Mount {
    mount(volume, Access::Read)
}

fn mount(volume: &str, access: Access) -> Mount {
    Mount {
        target: Some(FOLDER.to_owned()),
        source: Some(volume.to_owned()),
        typ: Some(MountType::VOLUME),
        read_only: Some(access == Access::Read),
        ..Mount::default()
    }
}

/// The stream of a container's first process.
#[derive(Debug)]
pub(super) struct Attached {
    client: Engine,
    container: String,
}

impl Attached {
    /// That of the container `id`.
    pub(super) fn to(engine: &Docker, id: &str) -> Self {
        Self { client: engine.client.clone(), container: id.to_owned() }
    }

    /// Attaches, whether the container runs or is yet to start.
    pub(super) async fn attach(&self) -> Result<Ends, SandboxError> {
        let options = AttachContainerOptionsBuilder::default()
            .stdin(true)
            .stdout(true)
            .stream(true)
            .logs(false)
            .build();
        let attached = self.client.attach_container(&self.container, Some(options)).await;
        let attached =
            attached.map_err(|error| SandboxError::Engine(explain("attach to the container", error)))?;
        let output = attached.output.map(|piece| match piece {
            Ok(LogOutput::StdOut { message } | LogOutput::Console { message }) => Ok(message),
            // The helper says nothing on its error stream.
            Ok(_) => Ok(Bytes::new()),
            Err(error) => Err(io::Error::other(error)),
        });
        Ok(Ends { input: attached.input, output: Box::pin(output) })
    }
}

#[async_trait]
impl Link for Attached {
    async fn open(&self) -> Result<Ends, SandboxError> {
        // An engine attaches to a container that does not run, and nothing would ever come.
        match standing(&self.client, &self.container).await {
            Ok(Standing::Runs) => {}
            Ok(Standing::Paused) => {
                let paused = Diagnostic::new(PAUSED, "the sandbox's container is paused");
                return Err(SandboxError::Engine(paused.help("`docker unpause` lets it go on")));
            }
            Ok(Standing::Gone(reason)) => return Err(SandboxError::Gone(reason)),
            Err(error) => return Err(SandboxError::Engine(explain("look at the container", error))),
        }
        self.attach().await
    }
}
