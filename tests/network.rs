//! What a sandbox reaches through its gateway, and everything it does not.

#![expect(clippy::unwrap_used, reason = "tests")]

mod credentials;
mod ends;
mod names;
mod reach;
mod runs;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidemill::event::What;
use tidemill::event::network::Use;
use tidemill::sandbox::gateway::Outside as Additions;
use tidemill::sandbox::{Body, Command, Engine as _, Placement, Sandbox, Spec};
use tidemill::workflow::manifest::Access;
use tidemill::workflow::network::{Mode, Network, Pattern, Reach, Rule};
use tidemill::workflow::path::WorkspacePath;

use crate::support::engine::{engine, run_id, small_image, small_limits};
use crate::support::outside::Outside;

fn rule(host: &str, port: u16) -> Rule {
    Rule { host: Pattern::parse(host).unwrap(), port }
}

/// A network of `allow`, with the names of the outside resolved and, where they lead here, let through.
fn spec(outside: &Outside, allow: &[(&str, u16)]) -> Spec {
    let reach = Reach {
        mode: Mode::Enforce,
        allow: allow.iter().map(|(host, port)| rule(host, *port)).collect(),
        credentials: Vec::new(),
    };
    let private = ["api.test.example", "*.wild.example", "other.test.example"];
    Spec {
        limits: small_limits(),
        network: Network::Gateway(reach),
        outside: Additions {
            private: private.into_iter().filter_map(Pattern::parse).collect(),
            resolver: Some(outside.resolver),
            ..Additions::default()
        },
        ..Spec::default()
    }
}

/// Runs `test` with a sandbox, removes it whatever becomes of the test, and gives all that was reached and refused.
/// Nothing of it is left on the engine.
async fn sandboxed<Test, Outcome>(spec: &Spec, test: Test) -> Vec<Use>
where
    Test: FnOnce(Arc<dyn Sandbox>) -> Outcome,
    Outcome: Future<Output = ()> + Send + 'static,
{
    let run = run_id();
    let started = engine().await.start(&run, &small_image().await, spec).await;
    let sandbox = started.unwrap_or_else(|error| panic!("{:#?}", error.report()));
    let mut events = sandbox.events().unwrap();
    let done = tokio::spawn(test(sandbox.clone())).await;
    sandbox.remove().await.unwrap();
    let (mut decided, mut used) = (Vec::new(), Vec::new());
    while let Some(event) = events.recv().await {
        match event {
            What::NetworkDecided { contact } => decided.push(contact),
            What::NetworkEnded { used: all } => used = all,
            other => panic!("{other:?}"),
        }
    }
    if let Err(error) = done {
        let said = error.into_panic();
        let said = said.downcast_ref::<String>().cloned().unwrap_or_default();
        panic!("{said}\n{used:#?}");
    }
    // Each kind of contact was told as it happened, and once.
    decided.sort();
    assert_eq!(decided, used.iter().map(|one| one.contact.clone()).collect::<Vec<_>>());
    nothing_left(&format!("tidemill.run={run}")).await;
    used
}

/// The exit code and what was printed.
async fn python(sandbox: &Arc<dyn Sandbox>, script: &str) -> (Option<i64>, String) {
    let argv = ["python3", "-c", script].map(str::to_owned).to_vec();
    let done = sandbox.exec(&Command { argv, timeout: Duration::from_secs(60) }).await.unwrap();
    (done.exit, String::from_utf8_lossy(&done.output.head).into_owned())
}

/// What a script that must succeed prints.
async fn says(sandbox: &Arc<dyn Sandbox>, script: &str) -> String {
    let (exit, text) = python(sandbox, script).await;
    assert_eq!(exit, Some(0), "{script}\n{text}");
    text
}

async fn place(sandbox: &Arc<dyn Sandbox>, at: &str, text: &str) {
    let body = Body::Bytes(Bytes::copy_from_slice(text.as_bytes()));
    let file = Placement::new(WorkspacePath::parse(at).unwrap(), body, Access::ReadOnly);
    sandbox.put(vec![file]).await.unwrap();
}

/// The reasons why connections to `host` were refused, sorted.
fn refusals(used: &[Use], host: &str) -> Vec<String> {
    let refused = used.iter().filter(|one| one.contact.host == host);
    let mut reasons: Vec<String> = refused.filter_map(|one| one.contact.refused.clone()).collect();
    reasons.sort();
    reasons
}

/// Nothing of a run is left on the engine.
async fn nothing_left(label: &str) {
    let client = bollard::Docker::connect_with_defaults().unwrap();
    let filters = std::collections::HashMap::from([("label", vec![label])]);
    let containers =
        bollard::query_parameters::ListContainersOptionsBuilder::default().all(true).filters(&filters);
    assert!(client.list_containers(Some(containers.build())).await.unwrap().is_empty());
    let networks = bollard::query_parameters::ListNetworksOptionsBuilder::default().filters(&filters);
    assert!(client.list_networks(Some(networks.build())).await.unwrap().is_empty());
    let volumes = bollard::query_parameters::ListVolumesOptionsBuilder::default().filters(&filters);
    assert!(client.list_volumes(Some(volumes.build())).await.unwrap().volumes.unwrap_or_default().is_empty());
}
