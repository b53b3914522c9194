//! How isolated a sandbox is, as read back from the engine.

use serde::{Deserialize, Serialize};

/// Read back from a running container, never copied from what was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Isolation {
    /// `docker` with the engine's version, e.g. `docker 20.10.24`.
    pub engine: String,
    /// The image's content digest.
    pub image: String,
    /// User and group commands run as, e.g. `1000:1000`.
    pub user: String,
    /// Network mode; `none` means no network.
    pub network: String,
    /// Whether the root file system is read-only.
    pub read_only_root: bool,
    /// Capabilities dropped; `ALL` is wanted.
    pub capabilities_dropped: Vec<String>,
    /// Capabilities added; none is wanted.
    pub capabilities_added: Vec<String>,
    /// Security options, e.g. `no-new-privileges`.
    pub security_options: Vec<String>,
    /// Whether it runs privileged.
    pub privileged: bool,
    /// Memory limit in bytes, swap included.
    pub memory_bytes: u64,
    /// Processor limit in billionths of a core.
    pub nano_cpus: u64,
    /// Process limit.
    pub pids: u64,
    /// What is mounted: `destination (type, ro|rw)`.
    pub mounts: Vec<String>,
    /// Whether an init reaps processes.
    pub init: bool,
    /// How commands are carried out.
    #[serde(default)]
    pub execution: Execution,
    /// What a container of a Docker engine would hold and this does not, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weaker: Vec<String>,
    /// That it stood ready before the run asked for it, and how it was known to be clean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm: Option<String>,
    /// Containers that stood ready and were refused, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// The low-level runtime, e.g. `runc`.
    pub runtime: String,
    /// Whether the engine runs without root.
    #[serde(default)]
    pub rootless: bool,
    /// Whether users inside are other users on the host.
    #[serde(default)]
    pub maps_users: bool,
    /// The engine's profile of system calls, e.g. `default`; empty when it has none.
    #[serde(default)]
    pub seccomp: String,
    /// Whether swap is limited; where it is not, memory of the sandbox may be swapped to the host's disk.
    #[serde(default)]
    pub swap_limited: bool,
    /// Bytes of `/dev/shm`.
    #[serde(default)]
    pub shared_memory_bytes: u64,
    /// Limits of a process, e.g. `core=0`.
    #[serde(default)]
    pub ulimits: Vec<String>,
    /// How many paths of `/proc` and `/sys` the engine masks.
    #[serde(default)]
    pub masked_paths: usize,
}

/// How commands are carried out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Execution {
    /// By the helper, over one stream.
    Helper,
    /// By one `exec` of the engine each.
    #[default]
    Exec,
}
