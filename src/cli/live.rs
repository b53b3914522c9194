//! Events of this process on the screen, as they happen.

use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::event::Event;
use crate::event::id::RunId;
use crate::report::line::{Detail, describe};
use crate::report::screen::Screen;
use crate::store::Store;

/// How events are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people, on standard error.
    Text,
    /// One JSON document each, on standard output.
    Json,
}

/// A view that goes on until it is finished.
#[derive(Debug)]
pub struct Live {
    done: CancellationToken,
    task: JoinHandle<()>,
}

/// Shows the events this process appends from now on: those of `only`, or all.
pub fn show(screen: Screen, store: &Store, only: Option<RunId>, format: Format) -> Live {
    let mut events = store.follow();
    let done = CancellationToken::new();
    let end = done.clone();
    let task = tokio::spawn(async move {
        loop {
            let event = tokio::select! {
                biased;
                event = events.recv() => event,
                () = end.cancelled() => return,
            };
            match event {
                Ok(event) if only.as_ref().is_none_or(|run| *run == event.run) => {
                    print(screen, &event, format);
                }
                // Others' events, or the screen was too slow for some: the log has them.
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            }
        }
    });
    Live { done, task }
}

impl Live {
    /// Shows what has come in so far, then stops.
    pub async fn finish(self) {
        self.done.cancel();
        // A view that failed has nothing more to show.
        let _ = self.task.await;
    }
}

fn print(screen: Screen, event: &Event, format: Format) {
    match format {
        Format::Json => {
            if let Ok(text) = serde_json::to_string(event) {
                screen.line(text);
            }
        }
        Format::Text => {
            if let Some(text) = describe(event, Detail::Short) {
                screen.talk(text);
            }
        }
    }
}
