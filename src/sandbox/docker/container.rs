//! A hardened container and its workspace.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bollard::models::{ContainerCreateBody, HealthConfig, HostConfig, Mount, MountType, VolumeCreateRequest};
use bollard::query_parameters::CreateContainerOptionsBuilder;
use bytes::Bytes;
use tokio::sync::mpsc;

use crate::diagnostic::{Diagnostic, Result};
use crate::event::What;
use crate::event::id::RunId;
use crate::event::isolation::Isolation;
use crate::sandbox::docker::belongings::Belongings;
use crate::sandbox::docker::errors::{explain, is_missing, not_created};
use crate::sandbox::docker::first::{First, Hands, NO_HELPER};
use crate::sandbox::docker::gateway::{Gateway, Parts};
use crate::sandbox::docker::harden::harden;
use crate::sandbox::docker::state::why_gone;
use crate::sandbox::docker::{Docker, isolation};
use crate::sandbox::helper::{Key, Process};
use crate::sandbox::sent::Sent;
use crate::sandbox::{
    Caps, Collected, Command, DEEPEST, Entry, Executed, Placed, Placement, ReadyImage, Sandbox, SandboxError,
    Spec, Stdio,
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
/// Files and folders that fit in the workspace: a loop that makes files must not eat the machine's memory.
pub const INODES: u64 = 200_000;
/// Bytes of `/tmp`.
pub const TMP_BYTES: u64 = 256 << 20;

/// Whether the agent may have been in the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Filled {
    Yes,
    No,
}

/// A container that was started and looked at.
pub(super) struct Up {
    pub(super) id: String,
    pub(super) isolation: Isolation,
    pub(super) hands: Hands,
    /// What the engine was asked for.
    pub(super) asked: HostConfig,
}

/// One running container.
pub(super) struct Container {
    pub(super) engine: Docker,
    pub(super) id: String,
    pub(super) volume: String,
    pub(super) pids: u64,
    pub(super) hands: Hands,
    pub(super) isolation: Isolation,
    /// What it was given and cannot have changed.
    pub(super) sent: Sent,
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
        let parts = match &spec.network {
            Network::None => None,
            Network::Gateway(reach) => Some(Parts::named(&name, reach)),
        };
        let belongings = Belongings { container: name.clone(), volume: name.clone(), parts };
        let starting = async {
            self.make_workspace(&name, run.as_str(), &spec.limits).await?;
            let gateway = match (&spec.network, &belongings.parts) {
                (Network::Gateway(reach), Some(parts)) => {
                    Some(self.start_gateway(parts, run, reach, &spec.outside).await?)
                }
                _ => None,
            };
            self.create_and_start(&name, run.as_str(), image, spec, gateway).await
        };
        let started = self.while_it_answers("start the sandbox", Box::pin(starting)).await;
        if started.is_err() {
            // The first error is the one to report.
            let _ = self.discard(&belongings).await;
        }
        started
    }

    pub(super) async fn make_workspace(&self, name: &str, run: &str, limits: &Limits) -> Result<()> {
        // Memory-backed, so that its size is a real quota on every engine; owned by root and sticky, so that the
        // agent can add to it and not take away what it was given.
        let options = format!("size={},nr_inodes={INODES},mode=1777,nosuid,nodev", limits.disk);
        let options: HashMap<String, String> =
            [("type", "tmpfs"), ("device", "tmpfs"), ("o", options.as_str())]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into();
        let request = VolumeCreateRequest {
            name: Some(name.to_owned()),
            driver: Some("local".to_owned()),
            driver_opts: Some(options.clone()),
            labels: Some(self.labels(run)),
            ..VolumeCreateRequest::default()
        };
        let made = self.client.create_volume(request).await;
        let made = made.map_err(|error| explain("make the workspace", error))?;
        isolation::same_options(&options, &made.options)
    }

    /// With the helper where it can run; with plain `exec` otherwise.
    async fn create_and_start(
        &self,
        name: &str,
        run: &str,
        image: &ReadyImage,
        spec: &Spec,
        gateway: Option<Gateway>,
    ) -> Result<Container> {
        let up = match self.start_with_helper(name, run, image, spec, gateway.as_ref()).await {
            Err(diagnostic) if diagnostic.code() == NO_HELPER => {
                self.remove_container(name).await?;
                self.doubt_helper().await;
                let plain = self.start_with(name, run, image, spec, First::Sleep, gateway.as_ref()).await;
                // Where neither works, the helper's complaint tells more.
                plain.map_err(|_| diagnostic)?
            }
            other => other?,
        };
        Ok(self.container(up, name.to_owned(), spec, gateway, Filled::No))
    }

    pub(super) async fn start_with_helper(
        &self,
        name: &str,
        run: &str,
        image: &ReadyImage,
        spec: &Spec,
        gateway: Option<&Gateway>,
    ) -> Result<Up> {
        let first = match self.helper_volume(&image.digest).await? {
            Some(volume) => First::Helper { volume, key: Key::random().map_err(|error| no_random(&error))? },
            None => First::Sleep,
        };
        self.start_with(name, run, image, spec, first, gateway).await
    }

    async fn start_with(
        &self,
        name: &str,
        run: &str,
        image: &ReadyImage,
        spec: &Spec,
        first: First,
        gateway: Option<&Gateway>,
    ) -> Result<Up> {
        let mut body = ContainerCreateBody {
            image: Some(image.digest.clone()),
            user: Some(first.user().to_owned()),
            entrypoint: Some(first.argv()),
            cmd: Some(Vec::new()),
            working_dir: Some(WORKSPACE.to_owned()),
            env: Some(first.environment(spec)),
            labels: Some(self.labels(run)),
            hostname: Some("sandbox".to_owned()),
            // An image's own check of its health is a command nobody asked for.
            healthcheck: Some(HealthConfig {
                test: Some(vec!["NONE".to_owned()]),
                ..HealthConfig::default()
            }),
            network_disabled: Some(true),
            open_stdin: Some(first.speaks()),
            stdin_once: Some(false),
            host_config: Some(self.asked(name, spec, &first).await?),
            ..ContainerCreateBody::default()
        };
        if let Some(gateway) = gateway {
            gateway.join(&mut body);
        }
        let asked = body.host_config.clone().unwrap_or_default();
        let options = CreateContainerOptionsBuilder::default().name(name).build();
        let created = self.client.create_container(Some(options), body).await;
        let created =
            created.map_err(|error| not_created("create the container", &image.reference, error))?;
        let ends = first.listen(self, &created.id).await?;
        let started = self.client.start_container(&created.id, None).await;
        started.map_err(|error| first.not_started(image, error))?;
        if let Some(gateway) = gateway {
            gateway.joined(self, &created.id).await?;
        }
        let (mut isolation, hands) =
            tokio::try_join!(self.read_back(&created.id, &asked), first.hands(self, &created.id, ends))?;
        if let Some(gateway) = gateway {
            self.verify_inside(gateway, &created.id).await?;
            // The network is of this run alone, so its name says nothing: what goes through it does.
            isolation.network = spec.network.to_string();
        }
        Ok(Up { id: created.id, isolation, hands, asked })
    }

    /// A running container of ours that another process started; it becomes this one's to remove. Its limits are
    /// those of `spec`. One with a network is not taken over: its gateway has lost the process that held it.
    pub async fn attach(&self, id: &str, spec: &Spec) -> Result<Arc<dyn Sandbox>> {
        let inspected = self.client.inspect_container(id, None).await;
        let inspected = inspected.map_err(|error| explain("look at the container", error))?;
        let alone = spec.network == Network::None;
        let Some(first) = First::of(&inspected).filter(|_| alone) else {
            let message = "the container was not started with the helper and without a network, so nobody can go on \
                           with it";
            return Err(Diagnostic::new(NO_HELPER, message).help("the run goes on in a new container"));
        };
        let volume = inspected.name.unwrap_or_default().trim_start_matches('/').to_owned();
        let asked = self.asked(&volume, spec, &first).await?;
        let (isolation, hands) = tokio::try_join!(self.read_back(id, &asked), first.hands(self, id, None))?;
        let up = Up { id: id.to_owned(), isolation, hands, asked };
        Ok(Arc::new(self.container(up, volume, spec, None, Filled::Yes)))
    }

    /// The container `id`, when it waits for `run`.
    pub(super) async fn attach_awaited(
        &self,
        run: &RunId,
        id: &str,
        spec: &Spec,
    ) -> Result<Option<Arc<dyn Sandbox>>> {
        let inspected = match self.client.inspect_container(id, None).await {
            Ok(inspected) => inspected,
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return Err(explain("look at the container", error)),
        };
        let name = inspected.name.unwrap_or_default();
        let waits_for = self.awaited().and_then(|awaited| awaited.run_of(name.trim_start_matches('/')));
        let runs = inspected.state.and_then(|state| state.running) == Some(true);
        if waits_for.as_ref() != Some(run) || !runs {
            return Ok(None);
        }
        self.attach(id, spec).await.map(Some)
    }

    /// All that is asked of the engine for a container with this workspace, its network excepted.
    async fn asked(&self, volume: &str, spec: &Spec, first: &First) -> Result<HostConfig> {
        let traits = self.traits().await?;
        let mut host = harden(host_config(volume, &spec.limits), traits, self.runtime(traits)?);
        host.mounts.get_or_insert_default().extend(self.host_mounts(&spec.mounts)?);
        Ok(first.host_config(host))
    }

    pub(super) fn container(
        &self,
        up: Up,
        volume: String,
        spec: &Spec,
        gateway: Option<Gateway>,
        filled: Filled,
    ) -> Container {
        Container {
            engine: self.clone(),
            id: up.id,
            volume,
            pids: spec.limits.pids,
            hands: up.hands.of_run(spec),
            isolation: up.isolation,
            sent: Sent::default(),
            gateway,
            filled: AtomicBool::new(filled == Filled::Yes),
            removed: AtomicBool::new(false),
        }
    }
}

fn no_random(error: &std::io::Error) -> Diagnostic {
    Diagnostic::new("sandbox::no_random", format!("the system gives no random numbers: {error}"))
        .help("run it again")
}

fn host_config(volume: &str, limits: &Limits) -> HostConfig {
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let tmpfs: HashMap<String, String> =
        [("/tmp".to_owned(), format!("size={TMP_BYTES},mode=1777,nosuid,nodev,exec"))].into();
    HostConfig {
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
    fn belongings(&self) -> Belongings {
        let parts = self.gateway.as_ref().map(|gateway| gateway.parts.clone());
        Belongings { container: self.id.clone(), volume: self.volume.clone(), parts }
    }

    /// What an engine error means for this sandbox: is it the engine, or is the container gone?
    pub(super) async fn failed(&self, what: &str, error: bollard::errors::Error) -> SandboxError {
        match self.gone().await {
            Some(reason) => SandboxError::Gone(reason),
            None => SandboxError::Engine(explain(what, error)),
        }
    }

    /// Why the container no longer runs; nothing when it does, or when the engine does not say.
    pub(super) async fn gone(&self) -> Option<String> {
        why_gone(&self.engine.client, &self.id).await.ok().flatten()
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
        match &self.hands {
            // Once it is filled, the helper writes, and finds out by itself whether it is reached.
            Hands::Helper(_) if self.filled.load(Ordering::Acquire) => self.place(files).await,
            _ => self.engine.while_it_answers("place files in the workspace", self.place(files)).await,
        }
    }

    async fn exec(&self, command: &Command) -> Result<Executed, SandboxError> {
        self.filled.store(true, Ordering::Release);
        match &self.hands {
            Hands::Helper(client) => client.exec(command).await,
            Hands::Exec => self.engine.while_it_answers("run a command", self.execute(command)).await,
        }
    }

    async fn exec_as(&self, id: u32, command: &Command) -> Result<Executed, SandboxError> {
        match &self.hands {
            Hands::Helper(client) => {
                self.filled.store(true, Ordering::Release);
                client.exec_as(id, command).await
            }
            Hands::Exec => self.exec(command).await,
        }
    }

    async fn start(&self, command: &Command, stdio: Stdio) -> Result<Process, SandboxError> {
        self.filled.store(true, Ordering::Release);
        self.hands.client()?.start(command, stdio).await
    }

    async fn follow(&self, id: u32, seen: u64) -> Result<Process, SandboxError> {
        self.hands.client()?.follow(id, seen).await
    }

    fn outlive(&self, run: &RunId) -> Result<()> {
        match (&self.hands, &self.gateway, self.engine.awaited()) {
            (Hands::Helper(_), None, Some(awaited)) => awaited.note(&self.volume, run),
            // Nobody could go on with it.
            _ => Ok(()),
        }
    }

    async fn list(&self, most: u64) -> Result<Vec<Entry>, SandboxError> {
        self.hands.client()?.list(None, DEEPEST, most).await
    }

    async fn read(&self, path: &WorkspacePath, limit: u64) -> Result<Bytes, SandboxError> {
        match &self.hands {
            Hands::Helper(client) => client.read_whole(path, limit).await,
            Hands::Exec => self.engine.while_it_answers("read a file", self.read_file(path, limit)).await,
        }
    }

    async fn collect(
        &self,
        paths: &[WorkspacePath],
        caps: &Caps,
        into: &std::path::Path,
    ) -> Result<Collected, SandboxError> {
        match &self.hands {
            Hands::Helper(_) => self.take_out(paths, caps, into).await,
            Hands::Exec => {
                let taking = self.take_out(paths, caps, into);
                self.engine.while_it_answers("take files out", taking).await
            }
        }
    }

    async fn remove(&self) -> Result<()> {
        if self.removed.load(Ordering::Acquire) {
            return Ok(());
        }
        if let Some(gateway) = &self.gateway {
            gateway.close().await;
        }
        let done = self.engine.discard(&self.belongings()).await;
        // What could not be removed is the engine's matter from now on, and not this one's again when it drops.
        self.removed.store(true, Ordering::Release);
        done
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
            let (engine, belongings) = (self.engine.clone(), self.belongings());
            let removal = async move {
                // What is not removed now is tried again by the next sweep.
                let _ = engine.discard(&belongings).await;
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
