//! The ways a run can go.

/// What a workflow does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Commands in a container, each of which appends a line to a file.
    Steps,
    /// The same, too short at first: its check fails, and it is sent back.
    Mended,
    /// Commands in a local sandbox.
    Local,
    /// Files that are read and written, and no commands.
    Notes,
    /// A file that is written at an instant of a schedule.
    Tick,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Steps, Self::Mended, Self::Local, Self::Notes, Self::Tick];

    /// Those that begin with a file.
    pub const DROPPED: [Self; 4] = [Self::Steps, Self::Mended, Self::Local, Self::Notes];

    /// Name of its workflow, and of its folder in the inbox.
    pub fn name(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Mended => "mended",
            Self::Local => "local",
            Self::Notes => "notes",
            Self::Tick => "tick",
        }
    }

    /// The one with that name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// How many lines its commands append, one each; none for those without commands.
    pub fn lines(self) -> usize {
        match self {
            Self::Steps => 4,
            Self::Mended | Self::Local => 3,
            Self::Notes | Self::Tick => 0,
        }
    }

    /// Names of its artifacts, and the words its check wants in each.
    pub fn artifacts(self) -> &'static [(&'static str, usize)] {
        match self {
            Self::Steps => &[("log.txt", 8)],
            Self::Mended | Self::Local => &[("log.txt", 6)],
            Self::Notes => &[("a.txt", 2), ("b.txt", 2)],
            Self::Tick => &[("tick.txt", 2)],
        }
    }

    /// What must stand in an artifact in the end, its lines in order, for an input with this content.
    pub fn text(self, artifact: &str, content: &str) -> Vec<String> {
        match self {
            Self::Steps | Self::Mended | Self::Local => {
                (1..=self.lines()).map(|number| format!("{content} {number}")).collect()
            }
            Self::Notes | Self::Tick => vec![format!("{} {content}", artifact.trim_end_matches(".txt"))],
        }
    }
}
