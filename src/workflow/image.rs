//! The container image a workflow's commands run in.

use std::collections::BTreeMap;

/// An image, as a script declares it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Image {
    /// Where it comes from.
    pub origin: Origin,
    /// What is installed on top.
    pub packages: Packages,
    /// For which platform, e.g. `linux/amd64`; the engine's own when absent.
    pub platform: Option<String>,
    /// When a registry is asked.
    pub pull: Pull,
}

/// Where an image comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A tag or a digest.
    Reference(String),
    /// A folder with a Dockerfile.
    Folder(Folder),
}

/// A folder with a Dockerfile, and how it is built.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Folder {
    /// Relative to the project's root.
    pub path: String,
    /// The stage to build; the last one when absent.
    pub target: Option<String>,
    /// Build arguments.
    pub args: BTreeMap<String, String>,
    /// Build secrets: the id in the Dockerfile = the environment variable with the value.
    pub secrets: BTreeMap<String, String>,
}

/// Packages installed on top of an image, in the order they are installed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Packages {
    /// Debian packages: `jq`, `jq=1.6-2.1`.
    pub apt: Vec<String>,
    /// Python packages: `pandas`, `pandas==2.2.3`.
    pub python: Vec<String>,
}

impl Packages {
    /// Whether there is nothing to install.
    pub fn is_empty(&self) -> bool {
        self.apt.is_empty() && self.python.is_empty()
    }
}

/// When a registry is asked for an image or the base of one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Pull {
    /// When it is not on the engine.
    #[default]
    Missing,
    /// Not at all: what is not on the engine is an error.
    Never,
    /// Before every run, so that a moved tag is noticed.
    Always,
}

impl Pull {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Missing, Self::Never, Self::Always];

    /// The word a script uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Never => "never",
            Self::Always => "always",
        }
    }

    /// The policy of that word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|pull| pull.as_str() == word)
    }
}

impl Default for Origin {
    fn default() -> Self {
        Self::Reference(String::new())
    }
}

impl Image {
    /// A tag or digest, as it is.
    pub fn tag(reference: impl Into<String>) -> Self {
        Self { origin: Origin::Reference(reference.into()), ..Self::default() }
    }

    /// A folder with a Dockerfile, built as it is.
    pub fn folder(path: impl Into<String>) -> Self {
        let folder = Folder { path: path.into(), ..Folder::default() };
        Self { origin: Origin::Folder(folder), ..Self::default() }
    }

    /// The tag or folder, as the script says it.
    pub fn reference(&self) -> &str {
        match &self.origin {
            Origin::Reference(reference) => reference,
            Origin::Folder(folder) => &folder.path,
        }
    }
}
