//! What a person wants to know of the engine before trusting it with work.

use std::path::PathBuf;

use jiff::Timestamp;

use crate::diagnostic::Result;
use crate::sandbox::docker::Docker;
use crate::sandbox::docker::errors::explain;

/// An engine, as it describes itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Its version, e.g. `20.10.24`.
    pub version: String,
    /// The API version agreed on, e.g. `1.41`.
    pub api: String,
    /// Its storage driver, e.g. `overlay2`.
    pub storage: String,
    /// Where it keeps images, on its own machine.
    pub folder: Option<PathBuf>,
    /// Bytes of memory it has.
    pub memory: u64,
    /// Processors it has.
    pub processors: u64,
    /// Its clock.
    pub clock: Option<Timestamp>,
    /// Limits that it cannot enforce, e.g. `memory`; its containers would be refused.
    pub lacks: Vec<&'static str>,
}

impl Docker {
    /// Asks the engine about itself.
    pub async fn facts(&self) -> Result<Facts> {
        let info = self.client.info().await.map_err(|error| explain("ask the engine about itself", error))?;
        let version = self.client.client_version();
        let unsigned =
            |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok()).unwrap_or(0);
        let limits =
            [("memory", info.memory_limit), ("processor", info.cpu_cfs_quota), ("process", info.pids_limit)];
        Ok(Facts {
            version: self.version.clone(),
            api: format!("{}.{}", version.major_version, version.minor_version),
            storage: info.driver.unwrap_or_else(|| "unknown".to_owned()),
            folder: info.docker_root_dir.map(PathBuf::from),
            memory: unsigned(info.mem_total),
            processors: unsigned(info.ncpu),
            clock: info.system_time.and_then(|time| time.parse().ok()),
            lacks: limits.into_iter().filter(|(_, has)| *has == Some(false)).map(|(name, _)| name).collect(),
        })
    }
}
