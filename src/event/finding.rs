//! What a check found wrong with an artifact.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One thing wrong: in which file, where in it, what was expected and what stands there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Which check: `csv.unique`, `image.blank`, `validate`, ...
    pub check: String,
    /// Workspace path of the artifact; absent when it is about several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Where in it: `row 17, column timestamp`, `/items/3/price`, `line 4`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// A sentence that stands alone, lower case, no full stop.
    pub message: String,
    /// What the check wants, where that can be said shortly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// What stands there, cut to a readable length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
}

impl Finding {
    /// A finding of `check` with its message.
    pub fn new(check: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            check: check.into(),
            path: None,
            place: None,
            message: message.into(),
            expected: None,
            found: None,
        }
    }

    /// Names the artifact.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Names the place in the artifact.
    #[must_use]
    pub fn place(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into());
        self
    }

    /// Says what was expected.
    #[must_use]
    pub fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(expected.into());
        self
    }

    /// Says what was found; cut at [`Finding::FOUND_LIMIT`] characters.
    #[must_use]
    pub fn found(mut self, found: impl AsRef<str>) -> Self {
        let found = found.as_ref();
        let mut cut: String = found.chars().take(Self::FOUND_LIMIT).collect();
        if cut.len() < found.len() {
            cut.push_str("...");
        }
        self.found = Some(cut);
        self
    }

    /// A cell or a value longer than this is no help to read.
    pub const FOUND_LIMIT: usize = 200;
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(formatter, "{path}")?;
            if let Some(place) = &self.place {
                write!(formatter, ", {place}")?;
            }
            write!(formatter, ": ")?;
        }
        write!(formatter, "{}", self.message)?;
        match (&self.expected, &self.found) {
            (Some(expected), Some(found)) => write!(formatter, " (expected {expected}, found {found})"),
            (Some(expected), None) => write!(formatter, " (expected {expected})"),
            (None, Some(found)) => write!(formatter, " (found {found})"),
            (None, None) => Ok(()),
        }
    }
}
