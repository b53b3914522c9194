//! One local sandbox: bubblewrap with the helper as its first process.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio as Io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use tidemill_helper::launch::GO;
use tidemill_helper::message::KEY_VARIABLE;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command as Program};
use tokio::sync::{Mutex, OnceCell};
use tokio_util::io::ReaderStream;

use crate::diagnostic::{Diagnostic, Result};
use crate::event::isolation::{Execution, Isolation};
use crate::sandbox::collect::{Ahead, collect};
use crate::sandbox::helper::{Client, Ends, Key, Link, PROGRAM, Process};
use crate::sandbox::local::limits;
use crate::sandbox::local::place;
use crate::sandbox::local::system::{AGENT, Given, arguments};
use crate::sandbox::{
    Caps, Collected, Command, DEEPEST, Entry, Executed, Placed, Placement, Sandbox, SandboxError, Spec,
    Stdio, environment, no_room,
};
use crate::workflow::manifest::Access;
use crate::workflow::path::WorkspacePath;

/// Bytes of complaint that are told.
const COMPLAINT: u64 = 4096;

/// A local sandbox. It starts with the first thing asked of it: what it is given must be there before.
pub(super) struct Local {
    id: String,
    folder: PathBuf,
    spec: Spec,
    isolation: Isolation,
    started: OnceCell<Started>,
    removed: AtomicBool,
}

struct Started {
    client: Client,
    child: Arc<Mutex<Child>>,
}

impl Local {
    pub(super) fn new(folder: PathBuf, version: &str, spec: &Spec) -> Self {
        let id = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self {
            id,
            isolation: isolation(version, spec, &folder),
            folder,
            spec: spec.clone(),
            started: OnceCell::new(),
            removed: AtomicBool::new(false),
        }
    }

    async fn client(&self) -> Result<&Client, SandboxError> {
        if self.removed.load(Ordering::Acquire) {
            return Err(SandboxError::Gone("it was removed".to_owned()));
        }
        let started = self.started.get_or_try_init(async || self.begin(&[]).await).await?;
        Ok(&started.client)
    }

    async fn begin(&self, given: &[Given]) -> Result<Started, SandboxError> {
        let key = Key::random().map_err(|error| cannot("make a key", &error))?;
        let helper = self.helper().map_err(|error| cannot("write the helper", &error))?;
        // First, so that the workflow's own comes after it and counts.
        let variables: Vec<(String, String)> = [owned(("PATH", "/usr/local/bin:/usr/bin:/bin"))]
            .into_iter()
            .chain(environment(&self.spec))
            .chain([owned((KEY_VARIABLE, &key.to_hex()))])
            .collect();
        let mut child = Program::new(&helper)
            .args(["launch", super::PROGRAM])
            .args(arguments(&helper, &self.spec, given, &variables, &limits::views(&self.folder)))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdin(Io::piped())
            .stdout(Io::piped())
            .stderr(Io::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| cannot("start bubblewrap", &error))?;
        // Before it has become bubblewrap, so that nothing it starts gets away from the limits.
        let pid = child.id().ok_or_else(|| SandboxError::Gone("its process ended at once".to_owned()))?;
        limits::hold(pid, &self.folder, &self.spec.limits)
            .map_err(|error| cannot("limit the sandbox", &error))?;
        if let Some(input) = &mut child.stdin {
            input.write_all(&[GO]).await.map_err(|error| cannot("start bubblewrap", &error))?;
        }
        let complaint = child.stderr.take();
        let link = Arc::new(Pipes::new(&mut child));
        match Client::connect(link, key).await {
            Ok(client) => Ok(Started { client, child: Arc::new(Mutex::new(child)) }),
            Err(error) => {
                // It may live and say nothing; then its complaint would never end.
                let _ = child.start_kill();
                let mut said = String::new();
                if let Some(complaint) = complaint {
                    // Its own words tell more than that it does not answer.
                    let _ = complaint.take(COMPLAINT).read_to_string(&mut said).await;
                }
                if said.trim().is_empty() {
                    return Err(error);
                }
                let message = format!("bubblewrap cannot make the sandbox: {}", said.trim());
                Err(SandboxError::Engine(Diagnostic::new("sandbox::local", message).help(
                    "may this user make user namespaces? see `kernel.unprivileged_userns_clone` and AppArmor's \
                     `kernel.apparmor_restrict_unprivileged_userns`, or use `sandbox = \"docker\"`",
                )))
            }
        }
    }

    /// The helper as a file of the sandbox's own folder.
    fn helper(&self) -> io::Result<PathBuf> {
        let path = self.folder.join("helper");
        fs::write(&path, PROGRAM)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o555))?;
        Ok(path)
    }
}

fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

fn cannot(what: &str, error: &io::Error) -> SandboxError {
    SandboxError::Engine(
        Diagnostic::new("sandbox::local", format!("cannot {what}: {error}"))
            .help("`tidemill doctor` checks what the local sandbox needs"),
    )
}

/// What bubblewrap was told; that it obeys is for `tidemill doctor --sandbox` to attack.
fn isolation(version: &str, spec: &Spec, folder: &Path) -> Isolation {
    let mut weaker = vec![
        "far fewer system calls are refused than by a container engine".to_owned(),
        "the number of files is limited by their memory only".to_owned(),
        "it ends with the process that started it".to_owned(),
    ];
    let held = limits::can_hold_together(folder);
    if !held {
        let words = "memory and processor time of all processes together are not limited: this user may make no \
                     control groups";
        weaker.push(words.to_owned());
    }
    let together = |limit: u64| if held { limit } else { 0 };
    Isolation {
        engine: format!("bubblewrap {version}"),
        image: "this machine's own system, read-only".to_owned(),
        user: format!("{AGENT}:{AGENT}"),
        network: "none".to_owned(),
        read_only_root: true,
        capabilities_dropped: vec!["ALL".to_owned()],
        security_options: vec!["no-new-privileges".to_owned()],
        memory_bytes: together(spec.limits.memory),
        nano_cpus: together(spec.limits.nano_cpus),
        pids: together(spec.limits.pids),
        mounts: vec![
            "/workspace (tmpfs, rw)".to_owned(),
            "/tmp (tmpfs, rw)".to_owned(),
            "/usr (bind, ro)".to_owned(),
        ],
        init: true,
        execution: Execution::Helper,
        weaker,
        runtime: "bwrap".to_owned(),
        maps_users: true,
        ulimits: vec!["core=0".to_owned()],
        ..Isolation::default()
    }
}

/// The first process's own input and output.
#[derive(Debug)]
struct Pipes {
    ends: std::sync::Mutex<Option<(tokio::process::ChildStdin, tokio::process::ChildStdout)>>,
}

impl Pipes {
    fn new(child: &mut Child) -> Self {
        Self { ends: std::sync::Mutex::new(child.stdin.take().zip(child.stdout.take())) }
    }
}

#[async_trait]
impl Link for Pipes {
    async fn open(&self) -> Result<Ends, SandboxError> {
        let ends = self.ends.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        // There is no second stream to the same process: when this one breaks, the process has ended.
        let (input, output) = ends.ok_or_else(|| SandboxError::Gone("its process ended".to_owned()))?;
        Ok(Ends { input: Box::pin(input), output: Box::pin(ReaderStream::new(output)) })
    }

    fn reopens(&self) -> bool {
        false
    }
}

#[async_trait]
impl Sandbox for Local {
    fn id(&self) -> &str {
        &self.id
    }

    fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    async fn put(&self, files: Vec<Placement>) -> Result<Placed, SandboxError> {
        let mut placed = Placed::default();
        for file in &files {
            placed.files += 1;
            placed.bytes += file.body.size().map_err(|why| SandboxError::Refused(file.path.clone(), why))?;
        }
        let is_first = !self.started.initialized();
        if is_first {
            if placed.bytes > self.spec.limits.disk {
                return Err(SandboxError::Engine(no_room()));
            }
            let folder = self.folder.clone();
            let laid = files.clone();
            let laying = tokio::task::spawn_blocking(move || {
                let given = place::lay_out(&folder, &laid)?;
                place::close(&given)?;
                Ok::<_, io::Error>(given)
            });
            let laid_out = laying.await.map_err(io::Error::other).and_then(|laid_out| laid_out);
            let given = laid_out.map_err(|error| cannot("lay out what the sandbox is given", &error))?;
            self.started.get_or_try_init(async || self.begin(&given).await).await?;
        }
        let client = self.client().await?;
        let written = files.into_iter().filter(|file| !is_first || file.access == Access::ReadWrite);
        client.write_all(written.collect()).await?;
        Ok(placed)
    }

    async fn exec(&self, command: &Command) -> Result<Executed, SandboxError> {
        self.client().await?.exec(command).await
    }

    async fn start(&self, command: &Command, stdio: Stdio) -> Result<Process, SandboxError> {
        self.client().await?.start(command, stdio).await
    }

    async fn follow(&self, id: u32, seen: u64) -> Result<Process, SandboxError> {
        self.client().await?.follow(id, seen).await
    }

    async fn list(&self, most: u64) -> Result<Vec<Entry>, SandboxError> {
        self.client().await?.list(None, DEEPEST, most).await
    }

    async fn read(&self, path: &WorkspacePath, limit: u64) -> Result<Bytes, SandboxError> {
        self.client().await?.read_whole(path, limit).await
    }

    async fn collect(
        &self,
        paths: &[WorkspacePath],
        caps: &Caps,
        into: &Path,
    ) -> Result<Collected, SandboxError> {
        let client = self.client().await?;
        collect(paths, caps, Ahead::SOME, async |path, limit| client.take(&path, limit, into).await).await
    }

    async fn remove(&self) -> Result<()> {
        if self.removed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        if let Some(started) = self.started.get() {
            let mut child = started.child.lock().await;
            // One that has ended already needs no kill.
            let _ = child.kill().await;
        }
        limits::release_patiently(&self.folder).await;
        place::clear(&self.folder).map_err(|error| {
            Diagnostic::new("sandbox::busy", format!("cannot remove {}", self.folder.display()))
                .cause(error)
                .help("the next start of tidemill removes it")
        })
    }
}

impl Drop for Local {
    /// Whoever forgot it: its process is killed as it drops, and its folder goes away with it.
    fn drop(&mut self) {
        if !*self.removed.get_mut() {
            drop(self.started.take());
            // What cannot be removed now is found by the next sweep, as long as its folder is there.
            if limits::release(&self.folder) {
                let _ = place::clear(&self.folder);
            }
        }
    }
}

impl fmt::Debug for Local {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Local").field(&self.id).finish()
    }
}
