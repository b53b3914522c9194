//! What a sandbox is made of on the engine, and how it goes away, now or later.

use std::sync::{Arc, Mutex, PoisonError};

use crate::diagnostic::Result;
use crate::sandbox::docker::Docker;
use crate::sandbox::docker::gateway::Parts;

/// Container, workspace, and its gateway if it has one.
#[derive(Debug, Clone)]
pub(super) struct Belongings {
    /// The container's id or name.
    pub(super) container: String,
    /// The workspace.
    pub(super) volume: String,
    /// The gateway.
    pub(super) parts: Option<Parts>,
}

/// What could not be removed. Its owner lives, so the sweep of no other process would ever take it.
#[derive(Debug, Clone, Default)]
pub(super) struct Leftovers(Arc<Mutex<Vec<Belongings>>>);

impl Leftovers {
    fn add(&self, belongings: Belongings) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(belongings);
    }

    fn take(&self) -> Vec<Belongings> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Docker {
    /// Removes all of it. What is left when that fails is tried again with each sweep.
    pub(super) async fn discard(&self, belongings: &Belongings) -> Result<()> {
        let done = self.while_it_answers("remove the sandbox", self.remove_all(belongings)).await;
        match (&done, self.awaited()) {
            (Err(_), _) => self.leftovers.add(belongings.clone()),
            (Ok(()), Some(awaited)) => awaited.forget(&belongings.volume),
            (Ok(()), None) => {}
        }
        done
    }

    /// Tries again what could not be removed. Gives how many went away.
    pub(super) async fn discard_leftovers(&self) -> usize {
        let mut removed = 0;
        for belongings in self.leftovers.take() {
            // One that fails again is kept for the next time.
            removed += usize::from(self.discard(&belongings).await.is_ok());
        }
        removed
    }

    async fn remove_all(&self, belongings: &Belongings) -> Result<()> {
        let sandbox = self.remove_both(&belongings.container, &belongings.volume);
        match &belongings.parts {
            None => sandbox.await,
            Some(parts) => {
                let (sandbox, parts) = tokio::join!(sandbox, self.remove_parts(parts));
                sandbox.and(parts)
            }
        }
    }
}
