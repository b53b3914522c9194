//! When so many runs wait, no more files are taken: they stand as safely in the inbox, and can still be taken back.

use crate::diagnostic::{Diagnostic, Result};
use crate::run::intake::notice::{Notice, Tell};
use crate::store::Store;

/// How full the queue is.
#[derive(Debug)]
pub(super) struct Brim {
    store: Store,
    most: u64,
    tell: Tell,
    said: bool,
}

impl Brim {
    const WHAT: &str = "taking files in";

    /// The queue is full when `most` runs wait.
    pub(super) fn new(store: Store, most: u64, tell: Tell) -> Self {
        Self { store, most, tell, said: false }
    }

    /// Why a complete file is not taken now, when the queue is full. It is said once, and once when it is not any more.
    pub(super) async fn reached(&mut self) -> Result<Option<String>> {
        let full = self.store.count_waiting().await? >= self.most;
        if full && !self.said {
            let message = format!("{} runs wait", self.most);
            let why = Diagnostic::new("watch::queue_full", message).help(
                "files stay in the inbox until fewer do; `max_pending` under [watch] in tidemill.toml is the limit",
            );
            self.tell.say(Notice::Paused { what: Self::WHAT, why: why.report() });
        } else if !full && self.said {
            self.tell.say(Notice::GoesOn(Self::WHAT));
        }
        self.said = full;
        Ok(full.then(|| {
            format!("it is complete, and is taken when fewer than {} runs wait (`max_pending`)", self.most)
        }))
    }
}
