//! A run succeeds, and a server is told by the daemon's own loop.

use std::sync::Arc;

use tidemill::clock::SystemClock;
use tidemill::config::{Project, Surrounding};
use tidemill::run::deliveries::Deliveries;
use tidemill::run::intake::notice::Tell;
use tidemill::run::intake::stop::Stop;

use crate::support::receiver::Receiver;
use crate::support::stage::Stage;

const SCRIPT: &str = r#"return test.script {
  test.call("write_file", { path = "output/a.txt", content = "one two three" }),
  test.say "done",
}"#;

#[tokio::test]
async fn a_server_is_told_of_a_run_that_published() {
    let receiver = Receiver::start().await;
    let fields = format!(
        r#"sandbox = "none", prompt = "Do it.",
  outputs = {{ ["output/a.txt"] = expect.text {{}} }},
  on_success = mill.notify {{ url = "{}" }},"#,
        receiver.url("/support")
    );
    let stage = Stage::without_image(&fields, SCRIPT).await;
    let mut project: Project = stage.conductor.project.clone();
    project.config.notify.allow.extend(Surrounding::parse("127.0.0.1"));
    let clock = Arc::new(SystemClock::new());
    let env = Arc::new(|_: &str| None);
    let deliveries = Deliveries::new(&project, stage.store.clone(), clock, env, Tell::default());
    let stop = Stop::new();
    let playing = async {
        let played = stage.play(None).await;
        while receiver.got().is_empty() {
            tokio::task::yield_now().await;
        }
        stop.finish();
        played
    };
    let (worked, played) = tokio::join!(deliveries.work(&stop), playing);
    worked.unwrap();
    let event = receiver.got()[0].event();
    assert_eq!(event["type"], "tidemill.run.succeeded");
    assert_eq!(event["data"]["published"].as_str(), played.row.published.as_deref());
    assert_eq!(event["data"]["artifacts"][0]["path"], "output/a.txt");
}
