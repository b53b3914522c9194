//! The command line through the built binary: exit codes, and what a wrong call is told. No engine is needed.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tidemill::event::id::{Digest, RunId};
use tidemill::event::input::{Fingerprint, InputChange, RawPath};
use tidemill::event::state::InputState;
use tidemill::event::trigger::Trigger;
use tidemill::store::{NewRun, Store};

/// How a call ended.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    out: String,
    err: String,
}

fn tidemill<A: AsRef<OsStr>>(folder: &Path, args: &[A]) -> Ended {
    let output = Command::new(env!("CARGO_BIN_EXE_tidemill"))
        .args(args)
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .env_remove("OPENAI_API_KEY")
        .stdin(Stdio::null())
        .output()
        .expect("the binary starts");
    Ended {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A new project in a folder of its own.
fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let made = tidemill(folder.path(), &["init", "."]);
    assert_eq!(made.code, Some(0), "{made:?}");
    folder
}

#[test]
fn help_names_every_command_and_succeeds() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let help = tidemill(folder.path(), &["--help"]);
    assert_eq!(help.code, Some(0));
    for command in [
        "init",
        "check",
        "run",
        "watch",
        "runs",
        "show",
        "logs",
        "retry",
        "cancel",
        "pause",
        "resume",
        "drain",
        "status",
        "quarantine",
        "explain",
        "next",
        "images",
        "doctor",
        "demo",
        "deliveries",
        "redeliver",
    ] {
        let line = format!("\n  {command} ");
        assert!(help.out.contains(&line), "{command} is missing in\n{}", help.out);
    }
}

#[test]
fn wrong_usage_is_2() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for args in [&[][..], &["rnu"], &["run"], &["init"], &["check", "--colour"]] {
        let ended = tidemill(folder.path(), args);
        assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
        assert!(ended.out.is_empty(), "{args:?} wrote to standard output");
    }
}

#[test]
fn without_a_project_the_way_to_one_is_shown() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for args in [&["check"][..], &["runs"], &["run", "hello"], &["demo"]] {
        let ended = tidemill(folder.path(), args);
        assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
        assert!(ended.err.contains("config::no_project"), "{args:?}: {}", ended.err);
        assert!(ended.err.contains("tidemill init"), "{args:?}: {}", ended.err);
    }
}

#[test]
fn a_broken_tidemill_toml_is_2_and_underlined() {
    let folder = project();
    fs::write(folder.path().join("tidemill.toml"), "[watch]\nsetle = \"1s\"\n").expect("writable");
    let ended = tidemill(folder.path(), &["check"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.err.contains("setle") && ended.err.contains("tidemill.toml:2"), "{}", ended.err);
}

#[test]
fn init_shows_the_next_steps_and_never_touches_a_folder_in_use() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let made = tidemill(folder.path(), &["init", "reports"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    assert!(made.out.contains("cd reports"), "{}", made.out);
    let again = tidemill(folder.path(), &["init", "reports"]);
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(again.err.contains("usage::not_empty"), "{}", again.err);
}

#[test]
fn a_new_project_passes_check() {
    let folder = project();
    let ended = tidemill(folder.path(), &["check"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn a_mistake_in_a_script_is_2_and_named_with_its_line() {
    let folder = project();
    let path = folder.path().join("workflows/hello.lua");
    let script = fs::read_to_string(&path).expect("the script");
    fs::write(&path, script.replace("prompt  ", "promtp  ")).expect("writable");
    let ended = tidemill(folder.path(), &["check"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let told = ended.out + &ended.err;
    assert!(told.contains("promtp") && told.contains("did you mean `prompt`"), "{told}");
    assert!(told.contains("workflows/hello.lua:"), "{told}");
}

#[test]
fn an_unknown_workflow_is_2_and_the_near_one_is_named() {
    let folder = project();
    fs::write(folder.path().join("a.txt"), "text").expect("writable");
    let ended = tidemill(folder.path(), &["run", "helo", "a.txt"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.err.contains("`hello`"), "{}", ended.err);
}

#[test]
fn a_project_without_runs_lists_none() {
    let folder = project();
    let ended = tidemill(folder.path(), &["runs"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[tokio::test]
async fn inputs_are_listed_with_their_reasons() {
    let folder = project();
    let none = tidemill(folder.path(), &["inputs"]);
    assert_eq!((none.code, none.out.as_str()), (Some(0), ""), "{none:?}");
    let store = Store::open(&folder.path().join(".tidemill")).await.unwrap();
    let change = |name: &[u8], state, reason: &str| InputChange {
        path: RawPath::new(PathBuf::from(OsStr::from_bytes(name))),
        fingerprint: Fingerprint { size: 3, mtime_ns: 1, inode: 2, device: 3 },
        state,
        reason: Some(reason.to_owned()),
    };
    let changes = [
        change(b"hello/a.txt", InputState::Settling, "it is quiet for 1 s of 2 s"),
        change(b"hello/\xff\x1b.pdf", InputState::Ignored, "no workflow takes it"),
    ];
    store.record(&changes).await.unwrap();
    store.close().await;
    let all = tidemill(folder.path(), &["inputs"]).out;
    assert_eq!(
        all,
        "ignored      hello/\\xff\\u{1b}.pdf  no workflow takes it\nsettling     hello/a.txt  it is quiet for 1 s of 2 s\n"
    );
    let one = tidemill(folder.path(), &["inputs", "--state", "settling", "--json"]).out;
    let one: serde_json::Value = serde_json::from_str(&one).unwrap();
    assert_eq!((one.as_array().unwrap().len(), one[0]["path"].as_str()), (1, Some("hello/a.txt")));
    let wrong = tidemill(folder.path(), &["inputs", "--state", "setling"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.err.contains("did you mean `settling`?"), "{}", wrong.err);
}

#[test]
fn an_unknown_run_is_a_clear_error() {
    let folder = project();
    for args in [["show", "20990101-000000-zzzz"], ["logs", "20990101-000000-zzzz"]] {
        let ended = tidemill(folder.path(), &args);
        assert!(matches!(ended.code, Some(1 | 2)), "{args:?}: {ended:?}");
        assert!(ended.err.contains("20990101-000000-zzzz"), "{args:?}: {}", ended.err);
    }
}

#[test]
fn next_lists_the_instants_of_schedules() {
    let folder = project();
    let none = tidemill(folder.path(), &["next"]);
    assert_eq!((none.code, none.out.as_str()), (Some(0), ""));
    assert!(none.err.contains("no schedule"), "{}", none.err);
    let script = r#"local mill = require "tidemill"
return mill.workflow {
  name = "report",
  sandbox = "none",
  triggers = { mill.schedule { cron = "30 2 * * *", timezone = "Europe/Berlin" }, mill.schedule { every = "12h" } },
  agent = { model = "scripted" },
  prompt = "Report.",
}
"#;
    fs::write(folder.path().join("workflows/report.lua"), script).expect("a script");
    let next = tidemill(folder.path(), &["next", "report", "--count", "4"]);
    assert_eq!((next.code, next.out.lines().count()), (Some(0), 4), "{next:?}");
    let berlin = next.out.lines().filter(|line| line.contains(":00 Europe/Berlin")).count();
    assert!((1..=2).contains(&berlin), "{}", next.out);
    let json = tidemill(folder.path(), &["next", "--json", "--count", "400"]);
    let list: Vec<serde_json::Value> = serde_json::from_str(&json.out).expect("a list");
    assert_eq!(list.len(), 400);
    let order: Vec<&str> = list.iter().filter_map(|one| one["at"].as_str()).collect();
    assert!(order.is_sorted() && order.len() == 400, "{order:?}");
    // Whatever the day is: more than a year, in which clocks go forward and back.
    let all = tidemill(folder.path(), &["next", "report", "--count", "1200"]);
    assert!(all.out.contains("left out that day") && all.out.contains("comes twice that day"), "{}", all.out);
    let unknown = tidemill(folder.path(), &["next", "reprot"]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.err.contains("did you mean `report`?"), "{}", unknown.err);
    let checked = tidemill(folder.path(), &["check", "--json"]);
    assert!(checked.out.contains("cron 30 2 * * *, Europe/Berlin"), "{}", checked.out);
}

#[test]
fn explain_tells_of_a_schedule() {
    let folder = project();
    let script = r#"local mill = require "tidemill"
return mill.workflow {
  name = "report",
  sandbox = "none",
  triggers = { mill.schedule { cron = "0 6 * * MON", timezone = "Europe/Zurich" }, mill.schedule { every = "12h" } },
  agent = { model = "hello-script" },
  prompt = "Report.",
}
"#;
    fs::write(folder.path().join("workflows/report.lua"), script).expect("a script");
    let one = tidemill(folder.path(), &["explain", "report/1"]);
    assert_eq!(one.code, Some(0), "{one:?}");
    assert!(one.out.starts_with("report/1: cron 0 6 * * MON, Europe/Zurich\n"), "{}", one.out);
    assert!(one.out.contains("it was never watched") && one.out.contains("  next: Mon "), "{}", one.out);
    assert!(!one.out.contains("report/2") && !folder.path().join(".tidemill/tidemill.db").exists());
    let both = tidemill(folder.path(), &["explain", "report", "--json"]);
    let both: serde_json::Value = serde_json::from_str(&both.out).expect("a document");
    let ids: Vec<&str> =
        both["schedules"].as_array().unwrap().iter().filter_map(|one| one["schedule"].as_str()).collect();
    assert_eq!(ids, ["report/1", "report/2"]);
    assert_eq!(both["schedules"][1]["next"].as_array().unwrap().len(), 5);
    let none = tidemill(folder.path(), &["explain", "hello"]);
    assert!(none.out.contains("has no schedule"), "{none:?}");
    let near = tidemill(folder.path(), &["explain", "reprot/1"]);
    assert!(
        near.out.contains("is outside the inbox") && near.out.contains("did you mean `report/1`?"),
        "{near:?}"
    );
    assert_eq!(tidemill(folder.path(), &["pause", "report"]).code, Some(0));
    let paused = tidemill(folder.path(), &["explain", "report/1"]).out;
    assert!(paused.contains("  paused: no new run of report begins until `tidemill resume`\n"), "{paused}");
    let relative = tidemill(folder.path(), &["explain", "hello/b.txt"]);
    assert!(
        relative.out.contains("/inbox/hello/b.txt"),
        "what lists say is a path in the inbox: {relative:?}"
    );
}

#[tokio::test]
async fn a_damaged_database_is_saved_and_the_way_to_begin_anew_is_told() {
    let folder = project();
    let state = folder.path().join(".tidemill");
    let store = Store::open(&state).await.unwrap();
    let change = InputChange {
        path: RawPath::new("hello/a.txt"),
        fingerprint: Fingerprint { size: 3, mtime_ns: 1, inode: 2, device: 3 },
        state: InputState::Seen,
        reason: None,
    };
    store.record(std::slice::from_ref(&change)).await.unwrap();
    let taken = store.ready(&[change]).await.unwrap().remove(0);
    store.close().await;
    let claimed = state.join(&taken.claimed_path);
    fs::create_dir_all(claimed.parent().unwrap()).unwrap();
    fs::write(&claimed, "abc").unwrap();
    let file = state.join(Store::FILE);
    let whole = tidemill(folder.path(), &["salvage", "--into", "whole"]);
    assert!(whole.out.contains("no need to begin anew"), "{whole:?}");
    let mut bytes = fs::read(&file).unwrap();
    bytes[..100].fill(0);
    fs::write(&file, &bytes).unwrap();
    let refused = tidemill(folder.path(), &["runs"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let told = refused.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("store::corrupt") && told.contains("tidemill salvage"), "{told}");
    let saved = tidemill(folder.path(), &["salvage"]);
    assert_eq!(saved.code, Some(0), "{saved:?}");
    for line in
        ["  inputs.jsonl: 1 rows", "1 of ", "the header was lost", "  1. move the folder .tidemill away"]
    {
        assert!(saved.out.contains(line), "{line}: {}", saved.out);
    }
    let back = format!("  .tidemill/{}  inbox/hello/a.txt", taken.claimed_path.display());
    assert!(saved.out.contains(&back), "{}", saved.out);
    assert_eq!(fs::read(&file).unwrap(), bytes, "it is left as it was");
    let again = tidemill(folder.path(), &["salvage"]);
    assert!(again.code == Some(1) && again.err.contains("salvage::occupied"), "{again:?}");
    let other = tidemill(folder.path(), &["salvage", "--into", "other", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&other.out).unwrap();
    assert_eq!(
        (&document["first_page"], &document["waiting"][0]["dropped"]),
        (&"header".into(), &"hello/a.txt".into())
    );
}

#[test]
fn workflows_are_listed_without_a_daemon_and_leave_nothing_behind() {
    let folder = project();
    let listed = tidemill(folder.path(), &["workflows"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    assert!(
        listed.out.starts_with("hello  ") && listed.out.contains("  starts by hello/*.txt"),
        "{}",
        listed.out
    );
    assert!(!folder.path().join(".tidemill/tidemill.db").exists());
    fs::write(folder.path().join("workflows/b.lua"), "return mill.workflow {").expect("a script");
    let json = tidemill(folder.path(), &["workflows", "--json"]);
    let list: Vec<serde_json::Value> = serde_json::from_str(&json.out).expect("a list");
    assert_eq!((&list[0]["workflow"], &list[1]["workflow"]), (&"hello".into(), &serde_json::Value::Null));
    assert_eq!(
        (&list[1]["broken"]["code"], &list[1]["file"]),
        (&"script::syntax".into(), &"workflows/b.lua".into())
    );
}

#[test]
fn explain_says_what_would_happen_to_a_path() {
    let folder = project();
    let taken = tidemill(folder.path(), &["explain", "inbox/hello/a.txt"]);
    assert_eq!(taken.code, Some(0), "{taken:?}");
    assert!(taken.out.contains("hello"), "{}", taken.out);
    let ignored = tidemill(folder.path(), &["explain", "inbox/hello/a.pdf"]);
    assert!(ignored.out.contains("hello/*.txt"), "the glob that misses is not named: {}", ignored.out);
}

#[tokio::test]
async fn the_queue_is_asked_and_told_from_the_command_line() {
    let folder = project();
    let said = |args: &[&str], code: i32, words: &str| {
        let ended = tidemill(folder.path(), args);
        assert_eq!(ended.code, Some(code), "{args:?}: {ended:?}");
        let told = ended.out + &ended.err;
        assert!(told.contains(words), "{args:?}: {told}");
    };
    said(&["pause", "helo"], 2, "did you mean `hello`?");
    said(&["pause", "hello"], 0, "no new run of hello begins until `tidemill resume`");
    let doctor = tidemill(folder.path(), &["doctor"]).out;
    assert!(doctor.contains("warn  queue: paused"), "{doctor}");
    said(&["status", "--json"], 0, "\"paused\":{\"all\":false,\"workflows\":[\"hello\"]}");
    said(&["resume"], 0, "nothing is paused");
    said(&["drain"], 0, "nobody watches this project");
    let store = Store::open(&folder.path().join(".tidemill")).await.unwrap();
    let id = RunId::parse("20261130-230000-aaaa").unwrap();
    let at = "2026-11-30T23:00:00Z".parse().unwrap();
    let run = NewRun::new(id, "hello", Trigger::Webhook, Digest::of("script"), "analyst", at);
    store.queue_run(run).await.unwrap();
    said(&["status"], 0, "nobody watches this project\nin work: 0\nwaiting: 1");
    said(&["retry", "aaaa"], 1, "retry::not_ended");
    said(&["cancel", "aaaa"], 0, "20261130-230000-aaaa  cancelled");
    said(&["cancel", "aaaa"], 1, "store::run_ended");
    said(&["retry", "--all"], 0, "no such run is left to be done over");
    said(&["retry", "--all", "--state", "queued"], 2, "have not ended");
    said(&["retry", "--all", "--state", "cancelled", "--since", "1s"], 0, "20261130-230000-aaaa once more");
    said(&["retry", "aaaa", "--json"], 0, "\"retry_of\":\"20261130-230000-aaaa\"");
    said(&["retry"], 2, "<RUN>");
    assert_eq!(store.count_waiting().await.unwrap(), 2);
}

#[test]
fn explain_names_the_options_of_a_drop() {
    let folder = project();
    let script = r#"local mill = require "tidemill"
return mill.workflow {
  name = "contracts",
  sandbox = "none",
  triggers = {
    mill.drop {
      glob = "contracts/{case}/*",
      max_size = 3,
      ready_when = "{name}.done",
      batch = { by = "folder", require = { "meta.json" } },
      on_success = mill.move "archive/{case}",
    },
  },
  agent = { model = "scripted" },
  prompt = "Read.",
}
"#;
    fs::write(folder.path().join("workflows/contracts.lua"), script).expect("a script");
    fs::create_dir_all(folder.path().join("inbox/contracts/42")).expect("a folder");
    let explained = |name: &str, text: &str| {
        fs::write(folder.path().join("inbox/contracts/42").join(name), text).expect("a file");
        tidemill(folder.path(), &["explain", &format!("inbox/contracts/42/{name}")]).out
    };
    let waits = explained("a.txt", "abc");
    for part in [
        "starts contracts: `contracts/{case}/*` matches",
        "max_size = \"3 B\", ready_when = \"{name}.done\", batch.by = \"folder\", batch.require = \"meta.json\"",
        "on_success = mill.move \"archive/{case}\"",
        "else: failed/contracts/42/a.txt with the reason beside it",
    ] {
        assert!(waits.contains(part), "{part}: {waits}");
    }
    assert!(!waits.contains("afterwards: processed"), "{waits}");
    let large = explained("b.txt", "abcd");
    assert!(large.contains("ignored: it has 4 B, which is above `max_size`: 3 B of contracts"), "{large}");
    let sentinel = explained("a.txt.done", "");
    assert!(
        sentinel.contains("it goes with another file (`ready_when` of contracts; rule `sentinel`)"),
        "{sentinel}"
    );
}

#[test]
fn check_refuses_a_project_that_would_take_its_own_files() {
    let folder = project();
    let file = folder.path().join("tidemill.toml");
    let text = fs::read_to_string(&file).expect("settings");
    assert!(!text.contains("[folders]"), "{text}");
    fs::write(&file, format!("{text}\n[folders]\nprocessed = \"inbox/done\"\n")).expect("writable");
    let checked = tidemill(folder.path(), &["check"]);
    assert_eq!(checked.code, Some(2), "{checked:?}");
    assert!(checked.err.contains("folder `processed` lies in the inbox"), "{checked:?}");
}
