//! A run's network: what the project adds to it, and what it did on its way to the log.

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::agent::Journal as _;
use crate::config::Project;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::What;
use crate::run::journal::Journal;
use crate::run::models::env;
use crate::sandbox::gateway::{Outside, Secret};
use crate::workflow::network::Network;

/// What `tidemill.toml` and the environment add to a workflow's network.
pub fn outside(project: &Project, network: &Network) -> Result<Outside> {
    let settings = &project.config.network;
    let mut outside =
        Outside { private: settings.private.clone(), resolver: settings.resolver, ..Outside::default() };
    if let Some(path) = &settings.ca_bundle {
        let path = project.root.join(path);
        let bundle = std::fs::read(&path).map_err(|error| {
            Diagnostic::new("config::ca_bundle", format!("cannot read the certificates {}", path.display()))
                .cause(error)
                .help("`ca_bundle` under [network] in tidemill.toml names them")
        })?;
        outside.authorities.push(bundle);
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
pub fn tell(events: Option<mpsc::UnboundedReceiver<What>>, journal: Journal) -> Telling {
    let writing = |mut events: mpsc::UnboundedReceiver<What>| async move {
        while let Some(what) = events.recv().await {
            journal.append(what).await?;
        }
        Ok(())
    };
    Telling(events.map(|events| tokio::spawn(writing(events))))
}

impl Telling {
    /// Waits until all was written; the sandbox is removed by then.
    pub async fn finish(self) -> Result<()> {
        let Some(writing) = self.0 else { return Ok(()) };
        writing.await.unwrap_or_else(|error| Err(Diagnostic::new("run::network", error.to_string())))
    }
}
