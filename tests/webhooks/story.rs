//! A request becomes an answer: the whole way, with a scripted model.

use std::sync::Arc;

use serde_json::json;
use tidemill::clock::{Clock as _, SystemClock};
use tidemill::run::hooks::Table;
use tidemill::run::intake::Daemon;
use tidemill::run::intake::notice::Tell;
use tidemill::run::intake::stop::Stop;
use tidemill::run::watching;
use tidemill::serve::Server;
use tidemill::trigger::webhook::Key;

use super::{SECRET, answer, env};
use crate::support::stage::Stage;

const FIELDS: &str = r#"sandbox = "none",
  triggers = { mill.webhook { path = "refunds", secret = mill.secret "SECRET" } },
  prompt = function(run)
    assert(run.trigger == "webhook" and #run.inputs == 1)
    return ("%s: order %s"):format(run.input:json().message, run.params.order)
  end,
  guardrails = { { on = "prompt", name = "said", check = function(prompt)
    if prompt.text ~= "it never came: order 77" then return guard.deny(prompt.text) end
  end } },
  outputs = { ["output/answer.txt"] = expect.text {} },"#;

const SCRIPT: &str = r#"return test.script {
  test.call("write_file", { path = "output/answer.txt", content = "one two three" }),
  test.say "refunded",
}"#;

#[tokio::test]
async fn a_request_is_answered_with_what_the_agent_did() {
    let stage = Stage::without_image(FIELDS, SCRIPT).await;
    let project = stage.conductor.project.clone();
    let routes = watching::routes(&project, &stage.store, None).await.unwrap();
    let table = Table::of(&routes, &env).unwrap();
    let clock = Arc::new(SystemClock::new());
    let daemon = Daemon::open(
        Daemon::lock(&project).unwrap(),
        &project,
        stage.store.clone(),
        clock.clone(),
        routes,
        Arc::new(stage.conductor.clone()),
        Tell::default(),
    );
    let daemon = daemon.await.unwrap();
    let hooks = daemon.hooks();
    hooks.set(table);
    let server = Server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = server.address();
    let stop = Stop::new();
    let asking = async {
        let (body, at) = (r#"{"message": "it never came"}"#, clock.now().as_second());
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let request = client
            .post(format!("http://{address}/hooks/refunds?order=77&wait=60"))
            .header("svix-id", "msg_1")
            .header("svix-timestamp", at)
            .header(
                "svix-signature",
                Key::standard(SECRET).unwrap().sign_standard("msg_1", at, body.as_bytes()),
            )
            .header("content-type", "application/json")
            .body(body);
        let answered = answer(request).await;
        stop.finish();
        answered
    };
    let answering = server.run(hooks, clock.clone(), &stop);
    let (watched, (), (status, document)) = tokio::join!(daemon.run(stop.clone()), answering, asking);
    watched.unwrap();
    assert_eq!((status, &document["state"]), (200, &json!("succeeded")), "{document}");
    assert_eq!(document["answer"], json!("refunded"));
    let folder = document["published"].as_str().unwrap();
    assert_eq!(document["artifacts"], json!(["answer.txt"]));
    let published = stage.project.path(folder).join("answer.txt");
    assert_eq!(std::fs::read_to_string(published).unwrap(), "one two three");
}
