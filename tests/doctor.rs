//! `tidemill doctor` through the built binary, with the engine out of reach.

#![expect(clippy::expect_used, reason = "tests")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Exit code and standard output. The key is made up, and the engine is a socket that is not there.
fn doctor(folder: &Path, args: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tidemill"))
        .arg("doctor")
        .args(args)
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .env("DOCKER_HOST", "unix:///nonexistent/docker.sock")
        .env("DOCTORS_TEST_KEY", "do-not-show-this")
        .stdin(Stdio::null())
        .output()
        .expect("the binary starts");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let made = Command::new(env!("CARGO_BIN_EXE_tidemill"))
        .args(["init", "."])
        .current_dir(folder.path())
        .output()
        .expect("the binary starts");
    assert!(made.status.success(), "{made:?}");
    folder
}

#[test]
fn outside_a_project_it_says_what_to_do_and_goes_on() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (code, out) = doctor(folder.path(), &[]);
    assert_eq!(code, Some(1), "{out}");
    assert!(out.contains("fail  project:") && out.contains("tidemill init"), "{out}");
    assert!(out.contains("fail  docker:") && out.contains("DOCKER_HOST"), "{out}");
    assert!(out.contains("clock:"), "{out}");
}

#[test]
fn a_key_is_named_and_never_shown() {
    let folder = project();
    let settings = folder.path().join("tidemill.toml");
    let mut text = fs::read_to_string(&settings).expect("the settings");
    text.push_str("\n[models.keyed]\nprovider = \"openai\"\napi_key_env = \"DOCTORS_TEST_KEY\"\n");
    fs::write(&settings, text).expect("writable");
    let (code, out) = doctor(folder.path(), &["--json"]);
    assert_eq!(code, Some(1), "{out}");
    assert!(!out.contains("do-not-show-this"), "{out}");
    let report: serde_json::Value = serde_json::from_str(&out).expect("one JSON document");
    let level = |what: &str| {
        let checks = report["checks"].as_array().expect("checks");
        checks.iter().find(|check| check["what"] == what).map(|check| check["level"].clone())
    };
    assert_eq!(level("project"), Some("ok".into()), "{out}");
    assert_eq!(level("workflows"), Some("ok".into()), "{out}");
    assert_eq!(level("model keyed"), Some("ok".into()), "{out}");
    assert_eq!(level("docker"), Some("fail".into()), "{out}");
}

#[test]
fn git_is_looked_for_when_a_workflow_needs_it() {
    let folder = project();
    let (_, without) = doctor(folder.path(), &[]);
    assert!(!without.contains("git:"), "{without}");
    let script = folder.path().join("workflows/hello.lua");
    let text = fs::read_to_string(&script).expect("the workflow");
    let manifest =
        "manifest = { [\"src/\"] = mill.git(\"https://example.org/r.git\", { ref = \"main\" }) },\n  agent";
    assert!(!text.contains("mill.git"));
    let text = text.lines().filter(|line| !line.contains("manifest")).collect::<Vec<_>>().join("\n");
    fs::write(&script, text.replacen("agent", manifest, 1)).expect("writable");
    let (_, with) = doctor(folder.path(), &[]);
    assert!(with.contains("ok    git: 2."), "{with}");
}

#[test]
fn secrets_without_which_watching_does_not_start_are_named() {
    let folder = project();
    let script = r#"local mill = require "tidemill"
return mill.workflow {
  name = "refunds",
  sandbox = "none",
  agent = { model = "hello-script" },
  prompt = "Refund.",
  triggers = { mill.webhook { path = "refunds", secret = mill.secret "NOWHERE_SET_IN" } },
  on_success = mill.notify { url = mill.secret "NOWHERE_SET_OUT" },
}
"#;
    fs::write(folder.path().join("workflows/refunds.lua"), script).expect("a script");
    let (_, out) = doctor(folder.path(), &[]);
    let warned = |name: &str| {
        out.lines().any(|line| line.starts_with("warn  secrets of refunds") && line.contains(name))
    };
    assert!(warned("NOWHERE_SET_IN") && warned("NOWHERE_SET_OUT"), "{out}");
}
