//! How a run that was interrupted went on.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where it works from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "with", rename_all = "snake_case")]
pub enum How {
    /// In the same sandbox, which outlived its host.
    SameSandbox,
    /// In a new sandbox, filled as the workspace was after this turn.
    Checkpoint {
        /// The turn, from 1.
        turn: u32,
    },
    /// In a new sandbox with nothing but the manifest.
    NewSandbox,
    /// In none: its files had been taken out and had passed their checks.
    NoSandbox,
}

impl fmt::Display for How {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SameSandbox => formatter.write_str("in the same sandbox"),
            Self::Checkpoint { turn } => {
                write!(formatter, "in a new sandbox, with the workspace as it was after turn {turn}")
            }
            Self::NewSandbox => formatter.write_str("in a new sandbox"),
            Self::NoSandbox => formatter.write_str("with the files that had passed their checks"),
        }
    }
}
