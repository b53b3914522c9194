//! How long a person who asked to stop waits for an engine that does not answer.

use std::future::Future;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::diagnostic::Diagnostic;

/// Removing a sandbox takes a tenth of a second.
const PATIENCE: Duration = Duration::from_secs(10);

/// Does the work, and leaves it once `stop` came and patience is over.
pub async fn patiently<T>(
    work: impl Future<Output = T>,
    stop: &CancellationToken,
    clock: &dyn Clock,
) -> Result<T, Diagnostic> {
    let over = async {
        stop.cancelled().await;
        clock.sleep(PATIENCE).await;
    };
    tokio::select! {
        done = work => Ok(done),
        () = over => {
            let message = format!("the sandbox was not removed within {} s of the stop", PATIENCE.as_secs());
            Err(Diagnostic::new("sandbox::left", message)
                .help("the engine does not answer; the next start of tidemill removes what is left on it"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;
    use crate::clock::SystemClock;

    #[tokio::test(start_paused = true)]
    async fn work_that_never_ends_is_left_after_a_stop_and_only_then() {
        let (stop, clock) = (CancellationToken::new(), SystemClock::new());
        let day =
            tokio::time::timeout(Duration::from_secs(86_400), patiently(pending::<()>(), &stop, &clock));
        assert!(day.await.is_err(), "nobody asked to stop");
        stop.cancel();
        let left = patiently(pending::<()>(), &stop, &clock).await.expect_err("it never ends");
        assert_eq!(left.code(), "sandbox::left");
        let work = async {
            tokio::time::sleep(PATIENCE / 2).await;
            7
        };
        assert_eq!(patiently(work, &stop, &clock).await.ok(), Some(7));
    }
}
