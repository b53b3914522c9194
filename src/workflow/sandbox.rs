//! The kind of place a workflow's commands run in.

/// Which kind of sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A hardened container.
    #[default]
    Docker,
    /// The machine's own system, read-only, behind namespaces.
    Local,
    /// No commands; only files.
    None,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Docker, Self::Local, Self::None];

    /// The word a script uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Local => "local",
            Self::None => "none",
        }
    }

    /// The kind of that word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}
