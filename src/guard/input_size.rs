//! `guard.input_size { max }`: a dropped file that is too big never reaches a sandbox.

use async_trait::async_trait;

use crate::diagnostic::Result;
use crate::event::verdict::{Stage, Verdict};
use crate::guard::{Guard, Subject};
use crate::workflow::units::show_size;

/// Denies inputs above a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputSize {
    max: u64,
}

impl InputSize {
    /// Allows at most `max` bytes.
    pub fn new(max: u64) -> Self {
        Self { max }
    }
}

#[async_trait]
impl Guard for InputSize {
    fn name(&self) -> &'static str {
        "input_size"
    }

    fn watches(&self, stage: Stage) -> bool {
        stage == Stage::Input
    }

    async fn judge(&self, subject: &Subject<'_>) -> Result<Verdict> {
        let Subject::Input { name, size, .. } = subject else {
            return Ok(Verdict::Pass);
        };
        if *size <= self.max {
            return Ok(Verdict::Pass);
        }
        Ok(Verdict::Deny {
            reason: format!(
                "`{name}` is {} ({size} bytes), the limit is {} ({} bytes)",
                show_size(*size),
                show_size(self.max),
                self.max
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    async fn judge(size: u64) -> Verdict {
        let subject = Subject::Input { name: "x.csv", size, file: Path::new("/nowhere") };
        InputSize::new(1000).judge(&subject).await.unwrap()
    }

    #[tokio::test]
    async fn the_limit_itself_passes_and_one_byte_more_does_not() {
        assert_eq!(judge(1000).await, Verdict::Pass);
        let Verdict::Deny { reason } = judge(1001).await else {
            panic!("1001 bytes passed a limit of 1000");
        };
        assert!(reason.contains("x.csv") && reason.contains("1001") && reason.contains("1000"));
    }
}
