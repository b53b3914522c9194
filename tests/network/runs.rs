//! Whole runs: from a script to the log and the receipt.

use tidemill::event::What;
use tidemill::event::state::RunState;

use crate::support::outside::{Outside, ok};
use crate::support::stage::Stage;

#[tokio::test]
async fn a_run_that_learns_reaches_what_is_public_and_says_what_it_needs() {
    let outside = Outside::open(|_| ok("hello"));
    // The variable is one that every test has; what matters is that its value is nowhere in the log.
    let value = env!("CARGO_MANIFEST_DIR");
    let fields = format!(
        r#"
  network = {{
    allow = {{ "listed.test.example:{https}" }},
    learn = true,
    secrets = {{ TOKEN = mill.secret("CARGO_MANIFEST_DIR", {{ host = "api.test.example:{https}" }}) }},
  }},
  prompt = "Go.",
  outputs = {{ ["output/done.txt"] = expect.text {{ min_words = 1 }} }},
"#,
        https = outside.https
    );
    let authority = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(authority.path(), &outside.authority).unwrap();
    let models = format!(
        "[network]\nprivate = [\"api.test.example\", \"other.test.example\"]\nresolver = \"{}\"\nca_bundle = \"{}\"\n\
         [models.actor]\nprovider = \"scripted\"\nscript = \"models/actor.lua\"\n",
        outside.resolver,
        authority.path().display()
    );
    let fetch = format!(
        r#"import os, ssl, urllib.request as u
c = ssl.create_default_context(); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE
def get(h, c=None): return u.urlopen(u.Request("https://" + h + ":{https}/", headers={{"X-Token": os.environ["TOKEN"]}}), context=c, timeout=20).read().decode()
os.mkdir("output"); open("output/done.txt", "w").write(get("api.test.example") + get("other.test.example", c))
try: get("metadata.test.example", c)
except OSError as error: print(type(error).__name__)
"#,
        https = outside.https
    );
    let script = format!(
        "return test.script {{ test.shell [[python3 - <<'EOF'\n{fetch}\nEOF]], test.say \"Done.\" }}"
    );
    let stage = Stage::with_models(&fields, &models, &script).await;
    let played = stage.play(None).await;
    assert_eq!(played.state(), RunState::Succeeded, "{:#?}", played.events);
    let learned = played.events.iter().find_map(|event| match &event.what {
        What::NetworkLearned { allow } => Some(allow.clone()),
        _ => None,
    });
    let https = outside.https;
    assert_eq!(
        learned,
        Some(vec![format!("api.test.example:{https}"), format!("other.test.example:{https}")])
    );
    let log = serde_json::to_string(&played.events).unwrap();
    assert!(!log.contains(value) && log.contains("network_decided"), "{log}");
    assert_eq!(outside.arrived.lock().unwrap().iter().filter(|head| head.contains(value)).count(), 1);
    let receipt = stage.project.root().join(played.row.published.as_deref().unwrap()).join("receipt.json");
    let receipt: serde_json::Value = serde_json::from_slice(&std::fs::read(receipt).unwrap()).unwrap();
    assert_eq!(receipt.pointer("/isolation/network").unwrap(), "learn: everything public");
    let refused =
        receipt["network"].as_array().unwrap().iter().filter(|one| !one["contact"]["refused"].is_null());
    assert_eq!(refused.count(), 1, "{receipt:#}");
}

#[tokio::test]
async fn a_secret_that_is_not_set_ends_the_run_before_its_sandbox() {
    let fields = r#"
  network = { secrets = { TOKEN = mill.secret("TIDEMILL_TEST_UNSET", { host = "api.test.example" }) } },
  prompt = "Go.",
"#;
    let stage = Stage::set(fields, "return test.script { test.say \"Done.\" }").await;
    let played = stage.play(None).await;
    assert_eq!(played.report().code, "run::no_secret");
    assert!(played.container().is_none());
}
