//! Which path leads to which workflow, with the secrets of now.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::diagnostic::{Diagnostic, Result};
use crate::run::intake::WorkflowRoute;
use crate::trigger::webhook::Key;
use crate::trigger::webhook::rate::Rate;
use crate::workflow::webhook::Webhook;

/// Every webhook of a project by its path.
#[derive(Debug, Default)]
pub struct Table(BTreeMap<String, Arc<Hook>>);

/// One of them.
#[derive(Debug)]
pub struct Hook {
    /// What the script declares.
    pub webhook: Webhook,
    /// What its requests are signed with.
    pub(super) keys: Vec<Key>,
    /// Where its runs go.
    pub(super) route: WorkflowRoute,
    rate: Mutex<Rate>,
}

impl Table {
    /// The webhooks of these workflows; `env` knows the secrets.
    ///
    /// Errors: `hooks::no_secret`, `hooks::bad_secret`, all of them at once.
    pub fn of(routes: &[WorkflowRoute], env: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        let (mut hooks, mut wrong) = (BTreeMap::new(), Vec::new());
        for route in routes {
            for webhook in &route.webhooks {
                let keys = webhook
                    .secrets
                    .iter()
                    .filter_map(|name| key(webhook, name, env).map_err(|mistake| wrong.push(mistake)).ok());
                let hook = Hook {
                    webhook: webhook.clone(),
                    keys: keys.collect(),
                    route: route.clone(),
                    rate: Mutex::new(Rate::new(webhook.rate)),
                };
                hooks.insert(webhook.path.clone(), Arc::new(hook));
            }
        }
        match wrong.len() {
            0 => Ok(Self(hooks)),
            1 => Err(wrong.remove(0)),
            _ => {
                Err(Diagnostic::new("hooks::no_secret", "secrets of webhooks are missing or cannot be used")
                    .help("nothing is watched until they can")
                    .related(wrong))
            }
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Path and workflow of each.
    pub fn paths(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(path, hook)| (path.as_str(), hook.route.workflow.as_str()))
    }

    pub(super) fn get(&self, path: &str) -> Option<Arc<Hook>> {
        self.0.get(path).cloned()
    }
}

impl Hook {
    /// Counts one request, or says how long to wait.
    pub(super) fn take(&self, now: Duration) -> Result<(), Duration> {
        self.rate.lock().unwrap_or_else(PoisonError::into_inner).take(now)
    }
}

/// What is wrong with the secrets of these webhooks, as [`Table::of`] says it.
pub fn missing(webhooks: &[Webhook], env: &dyn Fn(&str) -> Option<String>) -> Vec<Diagnostic> {
    let keys = |webhook: &Webhook| -> Vec<Diagnostic> {
        webhook.secrets.iter().filter_map(|name| key(webhook, name, env).err()).collect()
    };
    webhooks.iter().flat_map(keys).collect()
}

fn key(webhook: &Webhook, name: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<Key> {
    let path = &webhook.path;
    let Some(value) = env(name) else {
        let message = format!("the webhook `{path}` uses the secret `{name}`, and no such variable is set");
        return Err(Diagnostic::new("hooks::no_secret", message)
            .help(format!("set {name} in the environment of tidemill to the secret the sender signs with")));
    };
    Key::parse(&webhook.scheme, &value).map_err(|why| {
        let message = format!("the secret `{name}` of the webhook `{path}` cannot be used: {why}");
        let help = match webhook.scheme {
            crate::workflow::webhook::Scheme::Standard => {
                "`printf 'whsec_%s\\n' \"$(head -c 32 /dev/urandom | base64)\"` makes one; where the sender signs in \
                 another way, say its `scheme`"
            }
            _ => "let the sender make a longer one",
        };
        Diagnostic::new("hooks::bad_secret", message).help(help)
    })
}
