//! Why a run waits to be tried again, and how often it was.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::diagnostic::Report;

/// A run failed by something that passes, and is tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Again {
    /// Not before.
    pub at: Timestamp,
    /// Failures so far.
    pub failures: u32,
    /// Those of them that count: a service failed, and it may do so only so often.
    pub counted: u32,
    /// Tries in all, where this failure counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<u32>,
    /// What it failed by.
    pub why: Report,
}

impl fmt::Display for Again {
    /// `tried again at 14:03:10 (2 of 3): the server has too much to do`
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "tried again at {}", self.at.strftime("%H:%M:%S"))?;
        if let Some(of) = self.of {
            write!(formatter, " ({} of {of})", self.counted + 1)?;
        }
        write!(formatter, ": {}", self.why.message)
    }
}
