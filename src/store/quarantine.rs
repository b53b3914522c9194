//! What was worked on again and again, and never came to a good end.
//!
//! The same work is the same workflow, input and params, by the same script: a changed script begins anew. A run that a
//! person cancelled says nothing about it, and neither does one that was not begun because of all this.

use async_trait::async_trait;

use crate::diagnostic::Result;
use crate::event::id::RunId;
use crate::store::run::RunRow;

/// The code of the end of a run that was not begun.
pub const QUARANTINED: &str = "queue::quarantined";

/// What failed again and again.
#[async_trait]
pub trait Quarantine: Send + Sync {
    /// The last `most` runs of the same work as `run` before it, newest first, when none of them succeeded; none when
    /// there were fewer.
    async fn failed_in_a_row(&self, run: &RunId, most: u32) -> Result<Vec<RunRow>>;

    /// The work whose last `most` runs did not succeed, by the script its workflow was run with last: for each these runs,
    /// newest first.
    async fn quarantined(&self, most: u32) -> Result<Vec<Vec<RunRow>>>;
}
