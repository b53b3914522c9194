//! What the daemon waits for instead of ending: a disk with room, a database that another process lets go of.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::diagnostic::{Diagnostic, Result};
use crate::run::intake::notice::{Notice, Tell};
use crate::run::intake::stop::Stop;

/// Whether this is a state of the machine that ends by itself or by a person's hand, and no mistake of a run.
pub(crate) fn passes(error: &Diagnostic) -> bool {
    const PASSING: [&str; 7] = [
        "run::disk_full",
        "store::busy",
        "store::disk_full",
        "store::id_taken",
        "store::io",
        "watch::disk_full",
        "watch::low_disk",
    ];
    PASSING.contains(&error.code())
}

/// Work that stands still now and then. It is said once when it begins to, and once when it goes on.
#[derive(Debug)]
pub(crate) struct Pause {
    what: &'static str,
    why: Option<String>,
    clock: Arc<dyn Clock>,
    tell: Tell,
}

impl Pause {
    /// What stands still is tried again after this time.
    pub(crate) const AGAIN: Duration = Duration::from_secs(10);

    /// Work called `what` ("taking files in"), which goes on.
    pub(crate) fn new(what: &'static str, clock: Arc<dyn Clock>, tell: Tell) -> Self {
        Self { what, why: None, clock, tell }
    }

    /// Whether it stands still.
    pub(crate) fn holds(&self) -> bool {
        self.why.is_some()
    }

    /// It went well to its end.
    pub(crate) fn over(&mut self) {
        if self.why.take().is_some() {
            self.tell.say(Notice::GoesOn(self.what));
        }
    }

    /// Takes note of how a part of it went. Nothing when it stands still; what does not pass is the caller's.
    pub(crate) fn note<T>(&mut self, done: Result<T>) -> Result<Option<T>> {
        match done {
            Ok(done) => Ok(Some(done)),
            Err(error) if passes(&error) => {
                if self.why.as_deref() != Some(error.code()) {
                    self.why = Some(error.code().to_owned());
                    self.tell.say(Notice::Paused { what: self.what, why: error.report() });
                }
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The same, and waits until it is worth another try, or nothing new may begin.
    pub(crate) async fn wait<T>(&mut self, done: Result<T>, stop: &Stop) -> Result<Option<T>> {
        let done = self.note(done)?;
        if done.is_none() {
            tokio::select! {
                () = self.clock.sleep(Self::AGAIN) => {}
                () = stop.finishing() => {}
            }
        }
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::clock::SystemClock;

    fn error(code: &'static str) -> Result<()> {
        Err(Diagnostic::new(code, "told by the test"))
    }

    #[tokio::test(start_paused = true)]
    async fn what_passes_is_told_once_and_waited_for() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let ear = Arc::clone(&told);
        let tell = Tell::to(move |notice| {
            ear.lock().expect("the list").push(match notice {
                Notice::Paused { what, why } => format!("{what} pauses: {}", why.code),
                Notice::GoesOn(what) => format!("{what} goes on"),
                other => format!("{other:?}"),
            });
        });
        let (stop, mut pause) = (Stop::new(), Pause::new("work", Arc::new(SystemClock::new()), tell));
        for code in ["store::disk_full", "store::disk_full", "watch::low_disk"] {
            assert_eq!(pause.wait(error(code), &stop).await.expect("it passes"), None);
            assert!(pause.holds());
        }
        assert_eq!(pause.wait(Ok(7), &stop).await.expect("it went"), Some(7));
        assert!(pause.holds(), "another part of it may not go");
        for _ in 0..2 {
            pause.over();
            assert!(!pause.holds());
        }
        let said = ["work pauses: store::disk_full", "work pauses: watch::low_disk", "work goes on"];
        assert_eq!(*told.lock().expect("the list"), said);
        let corrupt = pause.wait(error("store::corrupt"), &stop).await.expect_err("it does not pass");
        assert_eq!(corrupt.code(), "store::corrupt");
        // Whoever stops does not wait.
        stop.finish();
        let waited = tokio::time::timeout(Pause::AGAIN / 2, pause.wait(error("store::busy"), &stop)).await;
        assert_eq!(waited.expect("no wait").expect("it passes"), None);
    }
}
