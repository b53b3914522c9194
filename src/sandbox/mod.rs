//! The place where tools execute.
//!
//! [`Engine`] makes sandboxes, [`Sandbox`] is one of them. The loop stays on the host: nothing secret goes in, and
//! what comes out is hostile until it has been checked.

mod awaited;
mod collect;
pub mod docker;
mod exact;
mod folders;
pub mod gateway;
pub mod helper;
pub mod local;
pub mod none;
mod output;
mod scratch;
mod sent;
pub mod unpack;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
pub use tidemill_helper::message::{Entry, Kind as EntryKind, Stdio};
use tokio::sync::mpsc;

use crate::diagnostic::{Diagnostic, Result};
use crate::event::What;
use crate::event::id::{Digest, RunId};
use crate::event::isolation::Isolation;
use crate::sandbox::gateway::Outside;
use crate::sandbox::helper::{Held, Process};
use crate::workflow::image::Image;
use crate::workflow::limits::Limits;
use crate::workflow::manifest::Access;
use crate::workflow::mode::Mode;
use crate::workflow::network::Network;
use crate::workflow::path::WorkspacePath;
use crate::workflow::view::Artifact;

pub use awaited::Awaited;
pub use scratch::sweep_scratch;

/// Makes images ready and sandboxes out of them.
#[async_trait]
pub trait Engine: Send + Sync + fmt::Debug {
    /// Makes the image ready: finds, pulls or builds it, telling `progress` what takes long.
    async fn prepare(&self, image: &Image, progress: &dyn Progress) -> Result<ReadyImage>;

    /// Starts a sandbox for one run and reads its isolation back. Fails when it is weaker than asked for.
    async fn start(&self, run: &RunId, image: &ReadyImage, spec: &Spec) -> Result<Arc<dyn Sandbox>>;

    /// Whether an image of that digest stands on the engine.
    async fn has(&self, _digest: &str) -> Result<bool> {
        Ok(false)
    }

    /// The sandbox `id` that an earlier process started for the run, when it still runs and can be gone on with; it
    /// becomes this process's to remove. Nothing for sandboxes that end with their process.
    async fn reattach(&self, _run: &RunId, _id: &str, _spec: &Spec) -> Result<Option<Arc<dyn Sandbox>>> {
        Ok(None)
    }

    /// Removes all that earlier processes left running for the run.
    async fn release(&self, _run: &RunId) -> Result<()> {
        Ok(())
    }

    /// Removes what dead processes of ours left behind; says how many things that were. What belongs to a live
    /// process is not touched.
    async fn sweep(&self) -> Result<usize>;
}

/// What a sandbox is started with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spec {
    /// What it may use.
    pub limits: Limits,
    /// Environment variables of its commands, besides those every sandbox has.
    pub environment: BTreeMap<String, String>,
    /// What it may reach.
    pub network: Network,
    /// What the project adds to that.
    pub outside: Outside,
    /// Places of host mounts that `[sandbox]` of the project allows, e.g. `/ref`.
    pub mounts: Vec<String>,
}

/// Environment variables of a sandbox's commands: what every one has, and what the workflow adds or says otherwise.
fn environment(spec: &Spec) -> Vec<(String, String)> {
    let ours = [
        // The root is read-only, and programs want a home to write into.
        ("HOME", "/tmp"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("PYTHONUNBUFFERED", "1"),
        ("LANG", "C.UTF-8"),
    ];
    let ours = ours.into_iter().filter(|(name, _)| !spec.environment.contains_key(*name));
    let theirs = spec.environment.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    ours.chain(theirs).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// An image on the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadyImage {
    /// As declared.
    pub reference: String,
    /// The engine's content digest (`sha256:...`): what containers are made from.
    pub digest: String,
    /// What its base was replaced with, when that could not be pulled.
    pub substituted_base: Option<String>,
    /// Whether this call built or pulled it.
    pub fresh: bool,
}

impl ReadyImage {
    /// For a sandbox that is made from no image; `reference` says what it is made from instead.
    fn none(reference: &str) -> Self {
        Self { reference: reference.to_owned(), digest: String::new(), substituted_base: None, fresh: false }
    }
}

/// One running sandbox.
#[async_trait]
pub trait Sandbox: Send + Sync + fmt::Debug {
    /// The engine's id.
    fn id(&self) -> &str;

    /// How isolated it is, as read back at start.
    fn isolation(&self) -> &Isolation;

    /// What happens to it besides what is asked of it, such as what it tries to reach, as it happens. Given once; it
    /// ends when the sandbox was removed.
    fn events(&self) -> Option<mpsc::UnboundedReceiver<What>> {
        None
    }

    /// Places files in the workspace, as one streamed archive. Folders above them are made; a read-only file cannot
    /// be changed, renamed or removed by commands, and is not sent again while its content is the same.
    async fn put(&self, files: Vec<Placement>) -> Result<Placed, SandboxError>;

    /// Runs a command as the agent's user in `/workspace`. When it ends, by itself or by its timeout, no process
    /// it started is left.
    async fn exec(&self, command: &Command) -> Result<Executed, SandboxError>;

    /// As [`Sandbox::exec`], with an id of the caller's, by which a host that comes later finds it: while its end is
    /// [held](Executed::held), a second command of that id is the first one again, told from its beginning. Sandboxes
    /// that end with their host need no such id.
    async fn exec_as(&self, _id: u32, command: &Command) -> Result<Executed, SandboxError> {
        self.exec(command).await
    }

    /// Starts a command that is followed while it runs. It is killed when what is given goes away.
    async fn start(&self, command: &Command, stdio: Stdio) -> Result<Process, SandboxError>;

    /// Follows a command that an earlier host started and [left](Process::leave); `seen` bytes of its output are not
    /// told again.
    async fn follow(&self, id: u32, seen: u64) -> Result<Process, SandboxError>;

    /// From now on it outlives this process when that dies: another one that carries the run out finds it again. Where
    /// that is not possible, nothing happens.
    fn outlive(&self, _run: &RunId) -> Result<()> {
        Ok(())
    }

    /// All that stands in the workspace, folders included, in no order; an error when there is more than `most`.
    async fn list(&self, most: u64) -> Result<Vec<Entry>, SandboxError>;

    /// Reads at most `limit` bytes of a regular file, as the agent could.
    async fn read(&self, path: &WorkspacePath, limit: u64) -> Result<Bytes, SandboxError>;

    /// Takes the files at `paths` out into the host folder `into`, under the same relative paths. Missing files are
    /// not an error; what is not a regular file inside the workspace, or too big, is refused by name.
    async fn collect(
        &self,
        paths: &[WorkspacePath],
        caps: &Caps,
        into: &Path,
    ) -> Result<Collected, SandboxError>;

    /// Removes it and everything that belongs to it. A second call does nothing.
    async fn remove(&self) -> Result<()>;
}

/// Folders below each other that a list of the workspace opens.
const DEEPEST: u32 = 128;

/// Permissions of a placed file where none are said.
const USUAL_MODE: u32 = 0o644;

/// A file to be placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// Where.
    pub path: WorkspacePath,
    /// Its content.
    pub body: Body,
    /// What commands may do with it.
    pub access: Access,
    /// Its permission bits, where they are not the usual ones. Write bits of a read-only file do nothing.
    pub mode: Option<Mode>,
    /// Hash of its content, where that is known: what is read from a file must then be just that.
    pub digest: Option<Digest>,
}

impl Placement {
    /// A file with the usual permissions, whose hash nobody knows.
    pub fn new(path: WorkspacePath, body: Body, access: Access) -> Self {
        Self { path, body, access, mode: None, digest: None }
    }
}

/// Content of a file to be placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// At hand.
    Bytes(Bytes),
    /// A regular file on the host, streamed.
    File(PathBuf),
}

impl Body {
    /// Its bytes, or why it cannot be placed.
    fn size(&self) -> Result<u64, String> {
        match self {
            Self::Bytes(bytes) => Ok(bytes.len() as u64),
            Self::File(path) => match std::fs::metadata(path) {
                Ok(data) if data.is_file() => Ok(data.len()),
                Ok(_) => Err(format!("cannot be placed: {} is not a regular file", path.display())),
                Err(error) => Err(format!("cannot be placed: {}: {error}", path.display())),
            },
        }
    }
}

/// The engine does not answer any more, and was waited for.
fn engine_gone(message: &str) -> Diagnostic {
    Diagnostic::new("sandbox::engine_gone", message)
        .help("the engine no longer answers: is the daemon still running? `tidemill doctor` checks it")
}

fn no_room() -> Diagnostic {
    Diagnostic::new("sandbox::workspace_full", "the files do not fit in the workspace")
        .help("raise `limits.disk` (and `limits.memory`, which holds it) of the workflow")
}

/// What was placed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Placed {
    /// Files that were sent.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files that stood there already, unchanged, and were not sent again.
    pub unchanged: u64,
}

/// A command for the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Program and arguments, e.g. `["sh", "-c", "..."]`.
    pub argv: Vec<String>,
    /// Killed after this.
    pub timeout: Duration,
}

/// How a command ended.
#[derive(Debug)]
pub struct Executed {
    /// Its exit code; `None` when it was killed by its timeout. 128 + n for signal n.
    pub exit: Option<i64>,
    /// Whether the timeout killed it.
    pub timed_out: bool,
    /// How many processes the kernel killed meanwhile because the sandbox's memory was used up.
    pub out_of_memory: u32,
    /// Head and tail of what it printed, both streams in the order they came.
    pub output: Output,
    /// How long it took.
    pub took: Duration,
    /// Keeps its end in the sandbox, so that a host that comes later finds it there.
    pub held: Option<Held>,
}

/// What a command printed: head and tail at hand, the whole in a file.
#[derive(Debug)]
pub struct Output {
    /// The first bytes.
    pub head: Vec<u8>,
    /// The last bytes, when it printed more than fits in the head.
    pub tail: Vec<u8>,
    /// Bytes printed in all.
    pub total: u64,
    /// Lines printed in all.
    pub lines: u64,
    /// The whole (up to [`Output::KEPT`] bytes) in a file that goes away with this value, when head and tail are
    /// not the whole.
    pub whole: Option<tempfile::NamedTempFile>,
}

impl Output {
    /// Head and tail each: together about 4,000 tokens, enough for a traceback at either end.
    pub const PART: usize = 8 * 1024;
    /// Bytes kept of the whole: a program that prints without end must not fill the disk.
    pub const KEPT: u64 = 64 * 1024 * 1024;

    /// Bytes between head and tail that are not shown.
    pub fn hidden(&self) -> u64 {
        self.total.saturating_sub((self.head.len() + self.tail.len()) as u64)
    }
}

/// How much may come out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// Bytes of one file.
    pub file: u64,
    /// Bytes of all files together.
    pub total: u64,
}

impl Default for Caps {
    fn default() -> Self {
        Self { file: 256 << 20, total: 1 << 30 }
    }
}

/// What came out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Collected {
    /// Regular files, hashed while written, in path order.
    pub artifacts: Vec<Artifact>,
    /// What was asked for and refused: the path, and a sentence why (a link, a device, too big).
    pub refused: Vec<(WorkspacePath, String)>,
}

/// What can go wrong in a running sandbox.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The container no longer exists or no longer runs: removed or killed from outside, or out of memory.
    #[error("the sandbox is gone: {0}")]
    Gone(String),
    /// The path is not there.
    #[error("`{0}` does not exist")]
    NotFound(WorkspacePath),
    /// The path is there, and it is not something that is read or written through.
    #[error("`{0}` {1}")]
    Refused(WorkspacePath, String),
    /// What was asked for cannot be carried out, whatever the path: a command longer than any system takes.
    #[error("{0}")]
    Unfit(String),
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] Diagnostic),
}

impl SandboxError {
    /// The error that ends a run, met while doing `what` ("fill the workspace").
    pub fn during(self, what: &str) -> Diagnostic {
        match self {
            Self::Engine(diagnostic) => diagnostic,
            Self::Gone(reason) => Diagnostic::new("sandbox::gone", format!("the sandbox is gone: {reason}")).help(
                "was the container removed by hand, or out of memory? `limits.memory` sets how much it may use; run it \
                 again, or drop the input again",
            ),
            other => Diagnostic::new("sandbox::refused", format!("cannot {what}: {other}"))
                .help("`limits.disk` sets how much fits in /workspace; the paths are the workflow's"),
        }
    }
}

/// Told what takes long: what, how far, and for how long.
pub trait Progress: Send + Sync {
    /// A step begins, e.g. `building images/python-data`.
    fn begin(&self, step: &str);
    /// The step is at this point, e.g. `step 3 of 5: RUN pip install`.
    fn at(&self, detail: &str);
    /// The step ended well.
    fn end(&self, outcome: &str);
}

/// For callers nobody watches.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _: &str) {}
    fn at(&self, _: &str) {}
    fn end(&self, _: &str) {}
}
