//! Events of this process on the screen, as they happen.

use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::event::id::RunId;
use crate::report::line::{Detail, describe};
use crate::report::screen::Screen;
use crate::store::Store;

/// Events read at once.
const PAGE: u32 = 500;

/// A view that goes on until it is finished.
#[derive(Debug)]
pub struct Live {
    done: CancellationToken,
    task: JoinHandle<()>,
}

/// Shows the events this process appends from now on: those of `only`, or all.
pub fn show(screen: Screen, store: &Store, only: Option<RunId>) -> Live {
    let mut events = store.follow();
    Live::spawn(|end| async move {
        loop {
            let event = tokio::select! {
                biased;
                event = events.recv() => event,
                () = end.cancelled() => break,
            };
            match event {
                Ok(event) if only.as_ref().is_none_or(|run| *run == event.run) => {
                    if let Some(text) = describe(&event, Detail::Short) {
                        screen.talk(text);
                    }
                }
                // Others' events, or the screen was too slow for some: the log has them.
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => break,
            }
        }
    })
}

/// Prints every event of a run, one JSON document each, on standard output. News of an event only wakes it: what is
/// printed is read from the log, so that none is missing.
pub fn print(screen: Screen, store: &Store, run: RunId) -> Live {
    let (mut events, store) = (store.follow(), store.clone());
    Live::spawn(|end| async move {
        let mut seen = 0;
        loop {
            let ending = tokio::select! {
                biased;
                _ = events.recv() => false,
                () = end.cancelled() => true,
            };
            while let Ok(page) = store.events(&run, seen, PAGE).await {
                let Some(last) = page.last() else { break };
                seen = last.seq;
                for text in page.iter().filter_map(|event| serde_json::to_string(event).ok()) {
                    screen.line(text);
                }
            }
            if ending {
                break;
            }
        }
    })
}

impl Live {
    fn spawn<F: Future<Output = ()> + Send + 'static>(view: impl FnOnce(CancellationToken) -> F) -> Self {
        let done = CancellationToken::new();
        let task = tokio::spawn(view(done.clone()));
        Self { done, task }
    }

    /// Shows what has come in so far, then stops.
    pub async fn finish(self) {
        self.done.cancel();
        // A view that failed has nothing more to show.
        let _ = self.task.await;
    }
}
