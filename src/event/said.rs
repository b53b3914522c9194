//! Why the host says something to the model besides its prompt.

use serde::{Deserialize, Serialize};

/// The occasion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Occasion {
    /// Its last answer was empty.
    Silence,
    /// Its last answer was cut at its length limit.
    Length,
    /// Its files did not pass their checks.
    Findings,
    /// A limit was reached, and it may say its last words.
    Closing,
    /// The workspace is older than what it has done in it.
    Loss,
}
