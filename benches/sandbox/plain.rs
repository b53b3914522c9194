//! Plain Docker: the engine's own create and start, and the `docker` command for the rest.

use std::collections::HashMap;
use std::path::Path;
use std::process::Stdio;

use bollard::models::{ContainerCreateBody, HostConfig, Mount, MountType, VolumeCreateRequest};
use bollard::query_parameters::{RemoveContainerOptionsBuilder, RemoveVolumeOptionsBuilder};
use tokio::process::Command;

/// A container with a memory-backed volume as its workspace.
pub struct Plain {
    client: bollard::Docker,
    id: String,
    volume: String,
}

impl Plain {
    /// Makes volume and container and starts it.
    pub async fn start(image: &str) -> Self {
        let client = bollard::Docker::connect_with_defaults().expect("an engine");
        let client = client.negotiate_version().await.expect("an engine");
        let options: HashMap<String, String> =
            [("type", "tmpfs"), ("device", "tmpfs"), ("o", "size=5g,mode=1777")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into();
        let request = VolumeCreateRequest {
            driver: Some("local".to_owned()),
            driver_opts: Some(options),
            ..VolumeCreateRequest::default()
        };
        let volume = client.create_volume(request).await.expect("a volume").name;
        let body = ContainerCreateBody {
            image: Some(image.to_owned()),
            entrypoint: Some(vec!["sleep".to_owned(), "infinity".to_owned()]),
            cmd: Some(Vec::new()),
            working_dir: Some("/workspace".to_owned()),
            host_config: Some(HostConfig {
                network_mode: Some("none".to_owned()),
                mounts: Some(vec![Mount {
                    target: Some("/workspace".to_owned()),
                    source: Some(volume.clone()),
                    typ: Some(MountType::VOLUME),
                    ..Mount::default()
                }]),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        };
        let id = client.create_container(None, body).await.expect("a container").id;
        client.start_container(&id, None).await.expect("a running container");
        Self { client, id, volume }
    }

    /// `docker exec`.
    pub async fn exec(&self, program: &str) {
        docker(&["exec", &self.id, program]).await;
    }

    /// `docker cp`, into the workspace.
    pub async fn copy_in(&self, folder: &Path, name: &str) {
        docker(&["cp", &folder.to_string_lossy(), &format!("{}:/workspace/{name}", self.id)]).await;
    }

    /// `docker cp`, out of the workspace.
    pub async fn copy_out(&self, name: &str, into: &Path) {
        docker(&["cp", &format!("{}:/workspace/{name}", self.id), &into.to_string_lossy()]).await;
    }

    /// Removes both.
    pub async fn remove(self) {
        let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
        self.client.remove_container(&self.id, Some(options)).await.expect("removed");
        let options = RemoveVolumeOptionsBuilder::default().build();
        self.client.remove_volume(&self.volume, Some(options)).await.expect("removed");
    }
}

async fn docker(arguments: &[&str]) {
    let status = Command::new("docker").args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(status.await.expect("the docker command").success(), "docker {arguments:?} failed");
}
