//! The workflows that new runs are made of. All who make runs read them here, so that they change for all at once.

use std::sync::Arc;

use tokio::sync::watch;

use crate::event::id::Digest;
use crate::run::intake::WorkflowRoute;

/// The workflows in force. Clones are the same.
#[derive(Debug, Clone)]
pub struct InForce(watch::Sender<Arc<[WorkflowRoute]>>);

impl InForce {
    /// These, until they are replaced.
    pub fn new(routes: Vec<WorkflowRoute>) -> Self {
        Self(watch::Sender::new(routes.into()))
    }

    /// As they are now.
    pub fn routes(&self) -> Arc<[WorkflowRoute]> {
        Arc::clone(&self.0.borrow())
    }

    /// From now on it is these.
    pub fn replace(&self, routes: Vec<WorkflowRoute>) {
        self.0.send_replace(routes.into());
    }

    /// The bundles new runs are pinned to: content that no run mentions yet.
    pub fn bundles(&self) -> Vec<Digest> {
        self.routes().iter().map(|route| route.bundle.clone()).collect()
    }

    /// For one who reads them and wants to know of others.
    pub(crate) fn subscribe(&self) -> News {
        News(self.0.subscribe())
    }
}

/// Knows whether the workflows in force were replaced since they were last read.
#[derive(Debug)]
pub(crate) struct News(watch::Receiver<Arc<[WorkflowRoute]>>);

impl News {
    /// Those in force, when they were replaced since they were last read.
    pub(crate) fn news(&mut self) -> Option<Arc<[WorkflowRoute]>> {
        // That nobody can replace them any more is no news.
        let is_new = self.0.has_changed().unwrap_or(false);
        is_new.then(|| Arc::clone(&self.0.borrow_and_update()))
    }

    /// What was read could not be used: it is news once more.
    pub(crate) fn again(&mut self) {
        self.0.mark_changed();
    }

    /// Waits until there is news, which stays news until it is read; for ever, when none can come.
    pub(crate) async fn changed(&mut self) {
        match self.0.changed().await {
            Ok(()) => self.0.mark_changed(),
            Err(_) => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn news_is_told_once_and_to_everybody() {
        let in_force = InForce::new(Vec::new());
        let (mut one, mut other) = (in_force.subscribe(), in_force.subscribe());
        assert!(one.news().is_none(), "what was there at the start is known");
        in_force.replace(Vec::new());
        one.changed().await;
        assert!(one.news().is_some() && other.news().is_some());
        assert!(one.news().is_none());
        one.again();
        assert!(one.news().is_some());
        drop(in_force);
        assert!(one.news().is_none());
    }
}
