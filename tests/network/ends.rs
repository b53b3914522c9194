//! What is left of a network that ends by force.

use tidemill::event::What;
use tidemill::sandbox::Engine as _;

use super::{nothing_left, python, spec};
use crate::support::engine::{engine, run_id, small_image};
use crate::support::outside::{Outside, ok};

#[tokio::test]
async fn the_sweep_takes_the_networks_of_the_dead() {
    let client = bollard::Docker::connect_with_defaults().unwrap();
    let outside = Outside::open(|_| ok("hello"));
    let (docker, run) = (engine().await, run_id());
    let spec = spec(&outside, &[("api.test.example", outside.https)]);
    let live = docker.start(&run, &small_image().await, &spec).await.unwrap();
    let inspected = client.inspect_container(live.id(), None).await.unwrap();
    let mut labels = inspected.config.unwrap().labels.unwrap();
    let owner = labels["tidemill.owner"].clone();
    let (before, start) = owner.rsplit_once('/').unwrap();
    labels.insert("tidemill.owner".to_owned(), format!("{before}/{}", start.parse::<u64>().unwrap() + 1));
    labels.insert("tidemill.run".to_owned(), format!("{run}-dead"));
    let request = bollard::models::NetworkCreateRequest {
        name: format!("tidemill-{run}-dead"),
        labels: Some(labels),
        ..bollard::models::NetworkCreateRequest::default()
    };
    client.create_network(request).await.unwrap();
    docker.sweep().await.unwrap();
    let filters = std::collections::HashMap::from([("label", vec![format!("tidemill.run={run}")])]);
    let options = bollard::query_parameters::ListNetworksOptionsBuilder::default().filters(&filters).build();
    let living = client.list_networks(Some(options)).await.unwrap().len();
    live.remove().await.unwrap();
    assert_eq!(living, 2, "what belongs to a living process stays");
    nothing_left(&format!("tidemill.run={run}-dead")).await;
    nothing_left(&format!("tidemill.run={run}")).await;
}
#[tokio::test]
async fn a_gateway_that_is_killed_closes_the_network_and_is_told() {
    let outside = Outside::open(|_| ok("hello"));
    let run = run_id();
    let spec = spec(&outside, &[("api.test.example", outside.http)]);
    let sandbox = engine().await.start(&run, &small_image().await, &spec).await.unwrap();
    let mut events = sandbox.events().unwrap();
    let client = bollard::Docker::connect_with_defaults().unwrap();
    let name = client.inspect_container(sandbox.id(), None).await.unwrap().name.unwrap();
    let gateway = format!("{}-gateway", name.trim_start_matches('/'));
    client.kill_container(&gateway, None).await.unwrap();
    let told = events.recv().await;
    let fetch = format!(
        "import urllib.request as u; u.urlopen('http://api.test.example:{}/', timeout=5)",
        outside.http
    );
    let (exit, _) = python(&sandbox, &fetch).await;
    sandbox.remove().await.unwrap();
    assert!(matches!(told, Some(What::Warned { report }) if report.code == "sandbox::gateway_lost"));
    assert_eq!(exit, Some(1));
    assert!(outside.lines().is_empty());
    nothing_left(&format!("tidemill.run={run}")).await;
}
