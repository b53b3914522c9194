//! A run's network: what the project adds to it, and what it did on its way to the log.

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::agent::Journal as _;
use crate::config::{Project, certificates};
use crate::diagnostic::{Diagnostic, Result};
use crate::event::What;
use crate::event::network::Use;
use crate::run::journal::Journal;
use crate::run::models::env;
use crate::sandbox::gateway::{Outside, Secret};
use crate::workflow::network::{Mode, Network, Reach};

/// What `tidemill.toml` and the environment add to a workflow's network.
pub fn outside(project: &Project, network: &Network) -> Result<Outside> {
    let settings = &project.config.network;
    let mut outside =
        Outside { private: settings.private.clone(), resolver: settings.resolver, ..Outside::default() };
    if let Some(path) = &settings.ca_bundle {
        outside.authorities.push(certificates("network", &project.root.join(path))?);
    }
    for name in secrets(network) {
        let value = env(&name).ok_or_else(|| {
            let message = format!("the workflow uses the secret `{name}`, and no such variable is set");
            Diagnostic::new("run::no_secret", message)
                .help(format!("set {name} in the environment of tidemill, and run it again"))
        })?;
        outside.secrets.insert(name, Secret::new(value.trim().to_owned()));
    }
    Ok(outside)
}

/// The network a workflow declares; `--learn` finds out what it should be.
pub fn declared(project: &Project, network: &Network) -> Network {
    match (network, project.config.network.mode) {
        (_, Mode::Enforce) => network.clone(),
        (Network::None, mode) => Network::Gateway(Reach { mode, ..Reach::default() }),
        (Network::Gateway(reach), mode) => Network::Gateway(Reach { mode, ..reach.clone() }),
    }
}

/// The variables that hold the credentials of a network.
pub fn secrets(network: &Network) -> Vec<String> {
    match network {
        Network::None => Vec::new(),
        Network::Gateway(reach) => {
            reach.credentials.iter().map(|credential| credential.secret.clone()).collect()
        }
    }
}

/// Writes what a sandbox tells into the log while it runs.
#[derive(Debug)]
pub struct Telling(Option<JoinHandle<Result<()>>>);

/// Begins to.
pub fn tell(events: Option<mpsc::UnboundedReceiver<What>>, journal: Journal, network: &Network) -> Telling {
    let learning = matches!(network, Network::Gateway(reach) if reach.mode == Mode::Learn);
    let writing = move |mut events: mpsc::UnboundedReceiver<What>| async move {
        let mut all = Vec::new();
        while let Some(what) = events.recv().await {
            if let What::NetworkEnded { used } = &what {
                all.clone_from(used);
            }
            journal.append(what).await?;
        }
        if learning {
            journal.append(What::NetworkLearned { allow: learned(&all) }).await?;
        }
        Ok(())
    };
    Telling(events.map(|events| tokio::spawn(writing(events))))
}

impl Telling {
    /// Waits until all was written; the sandbox is removed by then.
    pub async fn finish(mut self) -> Result<()> {
        let Some(writing) = self.0.as_mut() else { return Ok(()) };
        writing.await.unwrap_or_else(|error| Err(Diagnostic::new("run::network", error.to_string())))
    }
}

impl Drop for Telling {
    /// A sandbox that could not be removed tells nothing more: the run has ended.
    fn drop(&mut self) {
        if let Some(writing) = &self.0 {
            writing.abort();
        }
    }
}

/// The list that allows all that was reached, and nothing besides.
fn learned(used: &[Use]) -> Vec<String> {
    let reached = used.iter().map(|one| &one.contact).filter(|contact| contact.refused.is_none());
    let mut names: Vec<String> = reached
        .map(|contact| match contact.port {
            80 | 443 => contact.host.clone(),
            port => format!("{}:{port}", contact.host),
        })
        .collect();
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::network::Contact;

    #[test]
    fn what_was_reached_is_the_list() {
        let one = |host: &str, port, refused: Option<&str>| Use {
            contact: Contact {
                protocol: "tls".into(),
                host: host.into(),
                port,
                refused: refused.map(str::to_owned),
            },
            times: 1,
            sent: 0,
            received: 0,
        };
        let used = [
            one("pypi.org", 443, None),
            one("pypi.org", 80, None),
            one("api.example", 8443, None),
            one("metadata.example", 443, Some("its address is private")),
        ];
        assert_eq!(learned(&used), ["api.example:8443", "pypi.org"]);
    }
}
