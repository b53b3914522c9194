//! Ids of runs queued in one second: four random characters are not enough for thousands of them.

use std::collections::HashSet;

use jiff::Timestamp;

use crate::diagnostic::Result;
use crate::event::id::RunId;
use crate::store::Store;

/// Draws ids that nobody has.
#[derive(Debug, Default)]
pub(super) struct Ids {
    second: i64,
    given: HashSet<RunId>,
}

impl Ids {
    pub(super) async fn fresh(&mut self, at: Timestamp, store: &Store) -> Result<RunId> {
        loop {
            let id = RunId::new(at);
            if at.as_second() != self.second {
                let (start, _) = id.as_str().rsplit_once('-').unwrap_or_default();
                self.given = store.ids_from(start).await?.into_iter().collect();
                self.second = at.as_second();
            }
            if self.given.insert(id.clone()) {
                return Ok(id);
            }
        }
    }
}
