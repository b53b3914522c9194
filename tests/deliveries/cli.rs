//! The commands, and a daemon that cannot start, through the built binary.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::project::Project;

const WORKFLOW: &str = r#"local mill = require "tidemill"
return mill.workflow {
  name = "w", sandbox = "none", agent = { model = "actor" }, prompt = "Do it.",
  triggers = { mill.webhook { path = "w", secret = mill.secret "HOOK_SECRET" } },
  notify = mill.notify { url = "https://hooks.example.org/a/key", events = { "run.queued" } },
}
"#;

fn project(settings: &str) -> Project {
    let models = "[models.actor]\nprovider = \"scripted\"\nscript = \"models/actor.lua\"\n";
    Project::new().config(&format!("{settings}{models}")).workflow("w.lua", WORKFLOW).file(
        "models/actor.lua",
        "return require(\"tidemill.test\").script { require(\"tidemill.test\").say \"done\" }\n",
    )
}

/// Exit code, standard output and standard error.
fn tidemill(folder: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tidemill"))
        .args(args)
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .env("GIVEN_SECRET", super::SECRET)
        .env_remove("HOOK_SECRET")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn what_waits_is_listed_and_can_be_sent_again() {
    let project = project("");
    let call = |args: &[&str]| tidemill(project.root(), args);
    assert!(call(&["deliveries"]).2.contains("no messages yet"));
    assert!(call(&["deliveries", "--state", "failed"]).2.contains("no messages in the state failed"));
    let (code, _, err) = call(&["run", "w"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("a message about it waits: the next `tidemill watch` sends it"), "{err}");
    let (code, out, _) = call(&["deliveries"]);
    assert_eq!(code, Some(0));
    assert!(
        out.contains("1  waiting    run.queued") && out.contains("https://hooks.example.org/..."),
        "{out}"
    );
    let list: serde_json::Value = serde_json::from_str(&call(&["deliveries", "--json"]).1).unwrap();
    assert_eq!(list[0]["state"], "waiting");
    assert!(!list.to_string().contains("a/key"), "{list}");
    assert_eq!(call(&["deliveries", "--state", "failed"]).1, "");
    let (code, _, err) = call(&["deliveries", "--state", "fialed"]);
    assert!(code == Some(2) && err.contains("did you mean `failed`?"), "{err}");
    let (code, _, err) = call(&["redeliver", "1"]);
    assert!(code == Some(0) && err.contains("the next `tidemill watch` sends it"), "{err}");
    let (code, _, err) = call(&["redeliver", "2"]);
    assert!(code == Some(2) && err.contains("there is no delivery 2"), "{err}");
}

#[test]
fn a_daemon_does_not_start_without_its_secrets_or_its_port() {
    let (code, _, err) = tidemill(project("").root(), &["watch"]);
    assert!(code == Some(1) && err.contains("hooks::no_secret") && err.contains("HOOK_SECRET"), "{err}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap();
    let project = project(&format!("[server]\nlisten = \"{listen}\"\n"))
        .workflow("w.lua", &WORKFLOW.replace("HOOK_SECRET", "GIVEN_SECRET"));
    let (code, _, err) = tidemill(project.root(), &["watch"]);
    assert!(code == Some(1) && err.contains("serve::listen") && err.contains(&listen.to_string()), "{err}");
    // Checking needs neither.
    assert_eq!(tidemill(project.root(), &["check"]).0, Some(0));
}
