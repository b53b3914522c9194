//! Who carries runs out where a test is about something else.

use async_trait::async_trait;
use tidemill::diagnostic::Result;
use tidemill::event::state::RunState;
use tidemill::run::queue::Conduct;
use tidemill::store::RunRow;
use tokio_util::sync::CancellationToken;

/// Leaves every run as it is.
pub struct Nobody;

#[async_trait]
impl Conduct for Nobody {
    async fn conduct(&self, _: &RunRow, stop: CancellationToken) -> Result<RunState> {
        stop.cancelled().await;
        Ok(RunState::Running)
    }
}
