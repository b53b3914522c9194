//! What starts a workflow besides `tidemill run`.

use std::time::Duration;

/// Files dropped into the inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drop {
    /// Pattern relative to the inbox: `*` within a folder, `**` across folders, `{a,b}`, `[0-9]`; `{case}` captures.
    pub glob: String,
    /// How long a file must be quiet; the project's `watch.settle` without.
    pub settle: Option<Duration>,
    /// A file with fewer bytes is still waited for.
    pub min_size: u64,
    /// A file with more bytes is not taken.
    pub max_size: Option<u64>,
    /// Name of the file that says that another one is complete: `{name}.done`.
    pub ready_when: Option<String>,
    /// Name of the JSON file whose values become params: `{stem}.json`.
    pub params_from: Option<String>,
    /// Which files make one run together.
    pub batch: Option<Batch>,
    /// What becomes of files that stood there before anybody watched.
    pub existing: Existing,
    /// What makes a file the same as one before.
    pub dedupe: Dedupe,
    /// How far back `dedupe` looks; as far as the ledger goes without.
    pub window: Option<Duration>,
    /// In which order files that are complete at once are taken.
    pub order: Order,
    /// Where a file goes when its runs succeeded; `processed/` without.
    pub on_success: Option<Afterwards>,
    /// Where it goes when not; `failed/` without.
    pub on_failure: Option<Afterwards>,
    /// What becomes of symbolic links.
    pub symlinks: Symlinks,
}

impl Drop {
    /// An empty file is one that somebody has only begun.
    pub const MIN_SIZE: u64 = 1;

    /// With that glob, and nothing else said.
    pub fn new(glob: impl Into<String>) -> Self {
        Self {
            glob: glob.into(),
            settle: None,
            min_size: Self::MIN_SIZE,
            max_size: None,
            ready_when: None,
            params_from: None,
            batch: None,
            existing: Existing::default(),
            dedupe: Dedupe::default(),
            window: None,
            order: Order::default(),
            on_success: None,
            on_failure: None,
            symlinks: Symlinks::default(),
        }
    }
}

/// Which files make one run together, and when all of them are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// What its files have in common.
    pub by: By,
    /// Globs of names: each must have a file.
    pub require: Vec<String>,
    /// How long nothing of it may change; what `settle` says without.
    pub quiet: Option<Duration>,
    /// So many files go at once, without further waiting.
    pub max: Option<usize>,
    /// After so long without a change one that is not complete is given up.
    pub timeout: Option<Duration>,
}

/// What the files of a batch have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum By {
    /// The folder they lie in.
    Folder,
    /// Folder, and name without extension.
    Stem,
    /// Folder, and what this pattern captures in the name.
    Pattern(String),
}

/// Where a file goes when its runs have ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Afterwards {
    /// It stays where it was dropped.
    Keep,
    /// Into this folder of the project: `archive/{case}`.
    Move(String),
    /// It is removed.
    Delete,
}

/// What becomes of files that stood in the inbox before anybody watched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Existing {
    /// They are taken like any other.
    #[default]
    Process,
    /// They are left until they change.
    Ignore,
    /// At the first start they are left; what came while nobody watched later on is taken.
    SinceLastRun,
}

impl Existing {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Process, Self::Ignore, Self::SinceLastRun];

    /// The word used in Lua.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Ignore => "ignore",
            Self::SinceLastRun => "since_last_run",
        }
    }
}

/// What makes a file the same as one that was taken before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Dedupe {
    /// Nothing: a file that is dropped again is taken again.
    #[default]
    None,
    /// Its path.
    Path,
    /// Its content.
    Content,
    /// Both.
    PathAndContent,
}

impl Dedupe {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::None, Self::Path, Self::Content, Self::PathAndContent];

    /// The word used in Lua.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Path => "path",
            Self::Content => "content",
            Self::PathAndContent => "path+content",
        }
    }
}

/// In which order files that are complete at once are taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// The one that waited longest first.
    #[default]
    Arrival,
    /// By their paths.
    Name,
    /// By the times of their content, as the file system says.
    Mtime,
}

impl Order {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Arrival, Self::Name, Self::Mtime];

    /// The word used in Lua.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Arrival => "arrival",
            Self::Name => "name",
            Self::Mtime => "mtime",
        }
    }
}

/// What becomes of symbolic links.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Symlinks {
    /// They are not followed.
    #[default]
    Ignore,
    /// Those are followed that lead to a file in the inbox or in a folder of `watch.links_to`.
    Inside,
}

impl Symlinks {
    /// Every one.
    pub const ALL: [Self; 2] = [Self::Ignore, Self::Inside];

    /// The word used in Lua.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ignore => "ignore",
            Self::Inside => "inside",
        }
    }
}
