//! A hardened container and its workspace.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bollard::models::{
    ContainerCreateBody, ContainerStateStatusEnum, HostConfig, Mount, MountType, VolumeCreateRequest,
};
use bollard::query_parameters::CreateContainerOptionsBuilder;
use bytes::Bytes;
use tokio::sync::mpsc;

use crate::diagnostic::{Diagnostic, Result};
use crate::event::What;
use crate::event::id::RunId;
use crate::event::isolation::Isolation;
use crate::sandbox::docker::Docker;
use crate::sandbox::docker::errors::{explain, words};
use crate::sandbox::docker::gateway::Gateway;
use crate::sandbox::{
    Caps, Collected, Command, Executed, Placed, Placement, ReadyImage, Sandbox, SandboxError, Spec,
};
use crate::workflow::limits::Limits;
use crate::workflow::network::Network;
use crate::workflow::path::WorkspacePath;

/// Where the workspace is mounted.
pub(super) const WORKSPACE: &str = "/workspace";
/// Commands run as this user and group.
pub(super) const AGENT: &str = "1000:1000";
/// The numbers of [`AGENT`].
pub(super) const AGENT_ID: u64 = 1000;
/// The process that keeps the container alive is another user's, so that no command can end it.
const KEEPER: &str = "65534:65534";
/// Files and folders that fit in the workspace: a loop that makes files must not eat the machine's memory.
const INODES: u64 = 200_000;
/// Bytes of `/tmp`.
const TMP_BYTES: u64 = 256 << 20;

/// One running container.
pub(super) struct Container {
    pub(super) engine: Docker,
    pub(super) id: String,
    pub(super) volume: String,
    pub(super) pids: u64,
    isolation: Isolation,
    gateway: Option<Gateway>,
    /// Whether the agent may have been in the workspace: the manifest was placed, or a command ran.
    pub(super) filled: AtomicBool,
    removed: AtomicBool,
}

impl Docker {
    /// Makes workspace and container, starts it and reads its isolation back. What was made is removed when one of
    /// these fails.
    pub(super) async fn start_container(
        &self,
        run: &RunId,
        image: &ReadyImage,
        spec: &Spec,
    ) -> Result<Container> {
        let name = format!("tidemill-{run}-{:08x}", fastrand::u32(..));
        self.make_workspace(&name, run, &spec.limits).await?;
        let gateway = match &spec.network {
            Network::None => Ok(None),
            Network::Gateway(reach) => self.start_gateway(&name, run, reach, &spec.outside).await.map(Some),
        };
        let parts =
            gateway.as_ref().ok().and_then(|gateway| gateway.as_ref()).map(|gateway| gateway.parts.clone());
        let started = match gateway {
            Ok(gateway) => self.create_and_start(&name, run, image, spec, gateway).await,
            Err(error) => Err(error),
        };
        if started.is_err() {
            // The first error is the one to report; what is left is found by the sweep.
            let _ = self.remove_container(&name).await;
            let _ = self.remove_volume(&name).await;
            if let Some(parts) = parts {
                let _ = self.remove_parts(&parts).await;
            }
        }
        started
    }

    async fn make_workspace(&self, name: &str, run: &RunId, limits: &Limits) -> Result<()> {
        // Memory-backed, so that its size is a real quota on every engine; owned by root and sticky, so that the
        // agent can add to it and not take away what it was given.
        let options = format!("size={},nr_inodes={INODES},mode=1777,nosuid,nodev", limits.disk);
        let request = VolumeCreateRequest {
            name: Some(name.to_owned()),
            driver: Some("local".to_owned()),
            driver_opts: Some(
                [("type", "tmpfs"), ("device", "tmpfs"), ("o", options.as_str())]
                    .map(|(key, value)| (key.to_owned(), value.to_owned()))
                    .into(),
            ),
            labels: Some(self.labels(run)),
            ..VolumeCreateRequest::default()
        };
        let made = self.client.create_volume(request).await;
        made.map(drop).map_err(|error| explain("make the workspace", error))
    }

    async fn create_and_start(
        &self,
        name: &str,
        run: &RunId,
        image: &ReadyImage,
        spec: &Spec,
        gateway: Option<Gateway>,
    ) -> Result<Container> {
        let mut body = ContainerCreateBody {
            image: Some(image.digest.clone()),
            user: Some(KEEPER.to_owned()),
            entrypoint: Some(vec!["sleep".to_owned(), "infinity".to_owned()]),
            cmd: Some(Vec::new()),
            working_dir: Some(WORKSPACE.to_owned()),
            env: Some(environment(spec)),
            labels: Some(self.labels(run)),
            hostname: Some("sandbox".to_owned()),
            network_disabled: Some(true),
            host_config: Some(host_config(name, &spec.limits)),
            ..ContainerCreateBody::default()
        };
        if let Some(gateway) = &gateway {
            gateway.join(&mut body);
        }
        let options = CreateContainerOptionsBuilder::default().name(name).build();
        let created = self
            .client
            .create_container(Some(options), body)
            .await
            .map_err(|error| explain("create the container", error))?;
        self.client.start_container(&created.id, None).await.map_err(|error| {
            let text = words(&error);
            if text.contains("sleep") && text.contains("not found") {
                let message = format!("the image {} has no `sleep`", image.reference);
                return Diagnostic::new("sandbox::no_sleep", message)
                    .help("use an image with the usual shell tools, such as debian or alpine")
                    .cause(error);
            }
            explain("start the container", error)
        })?;
        if let Some(gateway) = &gateway {
            gateway.joined(self, &created.id).await?;
        }
        let isolation = self.read_back(&created.id, &spec.network, gateway.as_ref()).await?;
        Ok(Container {
            engine: self.clone(),
            id: created.id,
            volume: name.to_owned(),
            pids: spec.limits.pids,
            isolation,
            gateway,
            filled: AtomicBool::new(false),
            removed: AtomicBool::new(false),
        })
    }
}

/// What every sandbox has, and what the workflow adds or says otherwise.
fn environment(spec: &Spec) -> Vec<String> {
    let ours = [
        // The root is read-only, and programs want a home to write into.
        ("HOME", "/tmp"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("PYTHONUNBUFFERED", "1"),
        ("LANG", "C.UTF-8"),
    ];
    let ours = ours.into_iter().filter(|(name, _)| !spec.environment.contains_key(*name));
    let theirs = spec.environment.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    ours.chain(theirs).map(|(name, value)| format!("{name}={value}")).collect()
}

fn host_config(volume: &str, limits: &Limits) -> HostConfig {
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let tmpfs: HashMap<String, String> =
        [("/tmp".to_owned(), format!("size={TMP_BYTES},mode=1777,nosuid,nodev,exec"))].into();
    HostConfig {
        init: Some(true),
        network_mode: Some("none".to_owned()),
        readonly_rootfs: Some(true),
        cap_drop: Some(vec!["ALL".to_owned()]),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        privileged: Some(false),
        memory: Some(signed(limits.memory)),
        memory_swap: Some(signed(limits.memory)),
        nano_cpus: Some(signed(limits.nano_cpus)),
        pids_limit: Some(signed(limits.pids)),
        tmpfs: Some(tmpfs),
        mounts: Some(vec![Mount {
            target: Some(WORKSPACE.to_owned()),
            source: Some(volume.to_owned()),
            typ: Some(MountType::VOLUME),
            read_only: Some(false),
            ..Mount::default()
        }]),
        ..HostConfig::default()
    }
}

impl Container {
    /// What an engine error means for this sandbox: is it the engine, or is the container gone?
    pub(super) async fn failed(&self, what: &str, error: bollard::errors::Error) -> SandboxError {
        match self.gone().await {
            Some(reason) => SandboxError::Gone(reason),
            None => SandboxError::Engine(explain(what, error)),
        }
    }

    /// Why the container no longer runs; nothing when it does, or when the engine does not say.
    pub(super) async fn gone(&self) -> Option<String> {
        match self.engine.client.inspect_container(&self.id, None).await {
            Err(error) if super::errors::is_missing(&error) => Some("its container was removed".to_owned()),
            Err(_) => None,
            Ok(container) => {
                let state = container.state?;
                if state.running == Some(true) {
                    return None;
                }
                if matches!(
                    state.status,
                    Some(ContainerStateStatusEnum::REMOVING | ContainerStateStatusEnum::DEAD)
                ) {
                    return Some("its container was removed".to_owned());
                }
                if state.oom_killed == Some(true) {
                    return Some("its container ran out of memory".to_owned());
                }
                Some(format!("its container ended with exit code {}", state.exit_code.unwrap_or_default()))
            }
        }
    }
}

#[async_trait]
impl Sandbox for Container {
    fn id(&self) -> &str {
        &self.id
    }

    fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    fn events(&self) -> Option<mpsc::UnboundedReceiver<What>> {
        self.gateway.as_ref().and_then(Gateway::events)
    }

    async fn put(&self, files: Vec<Placement>) -> Result<Placed, SandboxError> {
        self.place(files).await
    }

    async fn exec(&self, command: &Command) -> Result<Executed, SandboxError> {
        self.filled.store(true, Ordering::Release);
        self.execute(command).await
    }

    async fn read(&self, path: &WorkspacePath, limit: u64) -> Result<Bytes, SandboxError> {
        self.read_file(path, limit).await
    }

    async fn collect(
        &self,
        paths: &[WorkspacePath],
        caps: &Caps,
        into: &std::path::Path,
    ) -> Result<Collected, SandboxError> {
        self.take_out(paths, caps, into).await
    }

    async fn remove(&self) -> Result<()> {
        if self.removed.load(Ordering::Acquire) {
            return Ok(());
        }
        match &self.gateway {
            None => self.engine.remove_both(&self.id, &self.volume).await?,
            Some(gateway) => {
                gateway.close().await;
                let sandbox = self.engine.remove_both(&self.id, &self.volume);
                let (sandbox, parts) = tokio::join!(sandbox, self.engine.remove_parts(&gateway.parts));
                sandbox.and(parts)?;
            }
        }
        self.removed.store(true, Ordering::Release);
        Ok(())
    }
}

impl Drop for Container {
    /// Whoever forgot it, or was cancelled before it could remove it: it is removed behind them.
    fn drop(&mut self) {
        if *self.removed.get_mut() {
            return;
        }
        // Without a runtime the process is ending, and the next sweep takes it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (engine, id, volume) = (self.engine.clone(), self.id.clone(), self.volume.clone());
            let parts = self.gateway.as_ref().map(|gateway| gateway.parts.clone());
            let removal = async move {
                // What is not removed now is found by the next sweep.
                let _ = engine.remove_both(&id, &volume).await;
                if let Some(parts) = parts {
                    let _ = engine.remove_parts(&parts).await;
                }
            };
            self.engine.removals.spawn_on(removal, &runtime);
        }
    }
}

impl fmt::Debug for Container {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Container").field(&self.id).finish()
    }
}
