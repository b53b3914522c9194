//! Whether the engine still answers at all: what hangs because it does not, is given up.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::diagnostic::Diagnostic;
use crate::sandbox::docker::Docker;
use crate::sandbox::engine_gone;

/// How often the engine is asked while something takes long.
const LOOK: Duration = Duration::from_secs(10);
/// How long it may take to answer: an engine under heavy load takes some seconds.
const ANSWER: Duration = Duration::from_secs(20);
/// Answers in a row that are missing when it counts as gone: a daemon that restarts is back before that.
const MISSES: u32 = 3;

impl Docker {
    /// Does `work`, and gives it up when the engine answers nobody any more. For what a request takes to be answered
    /// there is no limit of use: a build takes an hour, and a frozen engine for ever.
    pub(super) async fn while_it_answers<T, E>(
        &self,
        what: &str,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E>
    where
        E: From<Diagnostic>,
    {
        tokio::select! {
            done = work => done,
            () = self.silence() => Err(engine_gone(&format!("cannot {what}: the engine does not answer")).into()),
        }
    }

    /// Lasts as long as the engine answers.
    async fn silence(&self) {
        let mut misses = 0;
        while misses < MISSES {
            sleep(LOOK).await;
            let answered = matches!(timeout(ANSWER, self.client.ping()).await, Ok(Ok(_)));
            misses = if answered { 0 } else { misses + 1 };
        }
    }
}
