//! How the container is meant to be: what the attacks are measured by, and what bounds them.

/// As `key=value` arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    /// `one`: the probe to carry out in this process.
    pub one: Option<String>,
    /// `memory`: bytes of memory.
    pub memory: u64,
    /// `pids`: processes at once.
    pub pids: u64,
    /// `disk`: bytes of the workspace.
    pub disk: u64,
    /// `inodes`: entries of the workspace.
    pub inodes: u64,
    /// `tmp`: bytes of `/tmp`.
    pub tmp: u64,
    /// `port`: a port that somebody listens on at the host's loopback.
    pub port: Option<u16>,
    /// `host`: the host's name.
    pub host: Option<String>,
    /// `mount`, repeated: where something may be mounted besides what every container has.
    pub mounts: Vec<String>,
}

impl Asked {
    /// Reads the arguments; what is not understood is left out.
    pub fn parse(arguments: &[String]) -> Self {
        let mut asked = Self::default();
        for (key, value) in arguments.iter().filter_map(|argument| argument.split_once('=')) {
            let number = value.parse().unwrap_or_default();
            match key {
                "one" => asked.one = Some(value.to_owned()),
                "memory" => asked.memory = number,
                "pids" => asked.pids = number,
                "disk" => asked.disk = number,
                "inodes" => asked.inodes = number,
                "tmp" => asked.tmp = number,
                "port" => asked.port = value.parse().ok(),
                "host" => asked.host = Some(value.to_owned()),
                "mount" => asked.mounts.push(value.to_owned()),
                _ => {}
            }
        }
        asked
    }
}
