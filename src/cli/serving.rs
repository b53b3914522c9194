//! Requests are served while `watch` runs, from the moment when the first workflow has a webhook.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::clock::Clock;
use crate::diagnostic::Diagnostic;
use crate::run::hooks::{Hooks, Table};
use crate::run::intake::stop::Stop;
use crate::run::models;
use crate::run::reload::in_force::InForce;
use crate::serve::Server;

/// Keeps the webhooks as the workflows in force have them.
pub(super) struct Serving<'a> {
    /// Where requests come to.
    pub listen: SocketAddr,
    /// The workflows.
    pub in_force: InForce,
    /// Their webhooks.
    pub hooks: Arc<Hooks>,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Told what stands in the way of webhooks that came later.
    pub complain: &'a (dyn Fn(Diagnostic) + Sync),
}

impl Serving<'_> {
    /// Serves until `stop`. `server` is there already when a workflow has a webhook at the start.
    pub(super) async fn work(self, server: Option<Server>, stop: &Stop) {
        let run =
            |server: Server| Box::pin(server.run(Arc::clone(&self.hooks), Arc::clone(&self.clock), stop));
        let mut running = server.map(run);
        let mut news = self.in_force.subscribe();
        loop {
            let is_idle = running.is_none();
            let over = async {
                match running.as_mut() {
                    Some(running) => running.await,
                    None => pending().await,
                }
            };
            tokio::select! {
                () = over => return,
                () = stop.finishing(), if is_idle => return,
                () = news.changed() => {}
            }
            let Some(routes) = news.news() else { continue };
            match Table::of(&routes, &models::env) {
                Ok(table) => {
                    if is_idle && !table.is_empty() {
                        match Server::bind(self.listen).await {
                            Ok(server) => running = Some(run(server)),
                            Err(diagnostic) => (self.complain)(diagnostic.warning()),
                        }
                    }
                    self.hooks.set(table);
                }
                // Those before stay as they are.
                Err(diagnostic) => (self.complain)(diagnostic.warning()),
            }
        }
    }
}
