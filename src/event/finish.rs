//! Why a model stopped.

use serde::{Deserialize, Serialize};

/// Why a model stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// It was done. Calls count whatever the server says here.
    #[default]
    Stop,
    /// It ran into its output limit: text and arguments may be cut.
    Length,
    /// The provider withheld it.
    Refused,
}
