//! The first process of a container: the helper, or `sleep` where the helper cannot run.

use std::sync::Arc;

use bollard::models::{ContainerInspectResponse, HostConfig, HostConfigLogConfig, MountPoint};
use tidemill_helper::message::KEY_VARIABLE;

use crate::diagnostic::{Diagnostic, Result};
use crate::sandbox::docker::Docker;
use crate::sandbox::docker::container::AGENT;
use crate::sandbox::docker::errors::{explain, words};
use crate::sandbox::docker::helper::{Attached, FILE, FOLDER, read_only};
use crate::sandbox::helper::{Client, Ends, Key};
use crate::sandbox::{ReadyImage, SandboxError, Spec, environment};

/// The code of the diagnostic that says: the helper does not run here.
pub(super) const NO_HELPER: &str = "sandbox::no_helper";
/// Where `sleep` keeps the container alive, it is another user's, so that no command can end it. The helper is the
/// commands' own user, who alone may start and kill them without rights nobody else has; it cannot be ended either.
const KEEPER: &str = "65534:65534";

/// What is started first.
pub(super) enum First {
    /// The helper, from this volume, which obeys whoever knows the key.
    Helper { volume: String, key: Key },
    /// `sleep infinity`.
    Sleep,
}

/// What carries out commands.
#[derive(Debug)]
pub(super) enum Hands {
    /// The helper.
    Helper(Client),
    /// One `exec` of the engine per command.
    Exec,
}

impl Hands {
    /// Those of a run: its commands have the variables of its workflow.
    pub(super) fn of_run(self, spec: &Spec) -> Self {
        match self {
            Self::Helper(client) => Self::Helper(client.with_environment(&spec.environment)),
            // The container itself was made with them.
            Self::Exec => Self::Exec,
        }
    }

    /// The helper, for what plain `exec` cannot do.
    pub(super) fn client(&self) -> Result<&Client, SandboxError> {
        match self {
            Self::Helper(client) => Ok(client),
            Self::Exec => Err(SandboxError::Unfit(
                "the helper does not run in this sandbox, and only it can follow commands".to_owned(),
            )),
        }
    }
}

impl First {
    /// The helper of a container that was started with it.
    pub(super) fn of(inspected: &ContainerInspectResponse) -> Option<Self> {
        let config = inspected.config.as_ref()?;
        let key =
            config.env.iter().flatten().find_map(|variable| {
                Key::from_hex(variable.strip_prefix(KEY_VARIABLE)?.strip_prefix('=')?)
            })?;
        let mounted = |mount: &&MountPoint| mount.destination.as_deref() == Some(FOLDER);
        let volume = inspected.mounts.iter().flatten().find(mounted)?.name.clone()?;
        Some(Self::Helper { volume, key })
    }

    pub(super) fn argv(&self) -> Vec<String> {
        match self {
            Self::Helper { .. } => vec![format!("{FOLDER}/{FILE}"), "init".to_owned()],
            Self::Sleep => vec!["sleep".to_owned(), "infinity".to_owned()],
        }
    }

    pub(super) fn user(&self) -> &'static str {
        match self {
            Self::Helper { .. } => AGENT,
            Self::Sleep => KEEPER,
        }
    }

    /// Variables of the container. The helper is told a workflow's own with each command, so that a container can stand
    /// ready before anybody knows them.
    pub(super) fn environment(&self, spec: &Spec) -> Vec<String> {
        let (variables, key) = match self {
            Self::Helper { key, .. } => {
                (environment(&Spec::default()), Some(format!("{KEY_VARIABLE}={}", key.to_hex())))
            }
            Self::Sleep => (environment(spec), None),
        };
        variables.into_iter().map(|(name, value)| format!("{name}={value}")).chain(key).collect()
    }

    /// Whether it is spoken to over its input.
    pub(super) fn speaks(&self) -> bool {
        matches!(self, Self::Helper { .. })
    }

    pub(super) fn host_config(&self, config: HostConfig) -> HostConfig {
        match self {
            Self::Helper { volume, .. } => HostConfig {
                init: Some(false),
                mounts: Some(config.mounts.into_iter().flatten().chain([read_only(volume)]).collect()),
                // What it says is for the host alone, and is not to be kept by the engine as well.
                log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
                ..config
            },
            Self::Sleep => HostConfig { init: Some(true), ..config },
        }
    }

    /// What an engine's refusal to start it means.
    pub(super) fn not_started(&self, image: &ReadyImage, error: bollard::errors::Error) -> Diagnostic {
        let text = words(&error).to_lowercase();
        let not_run = ["exec format error", "not found", "no such file", "permission denied"]
            .iter()
            .any(|words| text.contains(words));
        match self {
            Self::Helper { .. } if not_run && text.contains(FILE) => Diagnostic::new(
                NO_HELPER,
                format!("the helper does not run on this engine: {}", words(&error).trim()),
            )
            .help("`tidemill doctor` checks the engine")
            .cause(error),
            Self::Sleep if text.contains("sleep") && not_run => {
                let message = format!("the image {} has no `sleep`", image.reference);
                Diagnostic::new("sandbox::no_sleep", message)
                    .help("use an image with the usual shell tools, such as debian or alpine")
                    .cause(error)
            }
            _ => explain("start the container", error),
        }
    }

    /// Opens the stream to the helper of the container `id` before it starts, so that nobody waits for it afterwards.
    pub(super) async fn listen(&self, engine: &Docker, id: &str) -> Result<Option<Ends>> {
        match self {
            Self::Helper { .. } => {
                let ends = Attached::to(engine, id).attach().await;
                ends.map(Some).map_err(|error| error.during("reach the helper"))
            }
            Self::Sleep => Ok(None),
        }
    }

    /// Hands for the started container `id`; `ends` are of a stream that is open already.
    pub(super) async fn hands(self, engine: &Docker, id: &str, ends: Option<Ends>) -> Result<Hands> {
        match self {
            Self::Helper { key, .. } => {
                let link = Arc::new(Attached::to(engine, id));
                let client = match ends {
                    Some(ends) => Client::connect_over(ends, link, key).await,
                    None => Client::connect(link, key).await,
                };
                client.map(Hands::Helper).map_err(|error| error.during("reach the helper"))
            }
            Self::Sleep => Ok(Hands::Exec),
        }
    }
}
