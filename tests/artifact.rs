//! Artifacts: published once, whole and as checked, or not at all; with a receipt folded from the events.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use jiff::Timestamp;
use tempfile::TempDir;
use tidemill::artifact::{Destination, Receipt, folder_name, keep_aside, publish};
use tidemill::diagnostic::Diagnostic;
use tidemill::event::finding::Finding;
use tidemill::event::finish::Finish;
use tidemill::event::id::{Digest, RunId};
use tidemill::event::input::{InputFile, RawPath};
use tidemill::event::isolation::{Execution, Isolation};
use tidemill::event::payload::Payload;
use tidemill::event::state::RunState;
use tidemill::event::trigger::{Params, Trigger};
use tidemill::event::usage::{Cost, Usage};
use tidemill::event::verdict::{Stage, Verdict};
use tidemill::event::{Event, What};
use tidemill::workflow::path::WorkspacePath;
use tidemill::workflow::view::Artifact;

const RUN: &str = "20261130-231805-k3xq";

fn run() -> RunId {
    RunId::parse(RUN).unwrap()
}

fn input() -> InputFile {
    InputFile { path: RawPath::new("energy/house 7.csv"), size: 5, digest: Digest::of("input") }
}

/// A whole run, one event a second.
fn events() -> Vec<Event> {
    let usage = |input_tokens| Usage { input_tokens, output_tokens: 10, ..Usage::default() };
    let responded = |turn, tokens, dollars| What::ModelResponded {
        turn,
        text: Payload::Inline("hm".to_owned()),
        calls: Vec::new(),
        items: Payload::default(),
        finish: Finish::Stop,
        usage: usage(tokens),
        cost: Some(Cost::from_usd(dollars)),
        millis: 5,
        model: None,
    };
    let entered = |state| What::StateEntered { state, reason: None };
    let collected = |path: &str, content: &str| What::ArtifactCollected {
        path: path.to_owned(),
        size: content.len() as u64,
        digest: Digest::of(content),
    };
    let judged = |stage, verdict| What::GuardrailChecked { stage, guard: "commands".to_owned(), verdict };
    let facts = vec![
        What::RunQueued {
            workflow: "energy".to_owned(),
            trigger: Trigger::Drop,
            inputs: vec![input()],
            params: Params::new(),
            script: Digest::of("script"),
            model: "gpt".to_owned(),
            retry_of: None,
        },
        entered(RunState::Preparing),
        What::ImageReady {
            reference: "images/python-data".to_owned(),
            digest: "sha256:1".to_owned(),
            substituted_base: Some("debian".to_owned()),
        },
        What::SandboxStarted { container: "c".to_owned(), isolation: isolation() },
        What::PromptReady { prompt: Payload::Inline("do it".to_owned()), digest: Digest::of("do it") },
        entered(RunState::Running),
        responded(1, 100, 0.25),
        judged(Stage::ToolCall, Verdict::Pass),
        judged(Stage::ToolCall, Verdict::Deny { reason: "no curl".to_owned() }),
        entered(RunState::Checking),
        collected("output/b.md", "b, wrong"),
        collected("output/a.csv", "a"),
        What::ChecksEnded {
            attempt: 0,
            findings: vec![Finding::new("text.words", "too short").path("output/b.md")],
        },
        entered(RunState::Repairing),
        responded(2, 200, 0.5),
        entered(RunState::Checking),
        collected("output/b.md", "b"),
        collected("output/a.csv", "a"),
        What::ChecksEnded { attempt: 1, findings: Vec::new() },
        entered(RunState::Publishing),
    ];
    let start: Timestamp = "2026-11-30T23:18:05Z".parse().unwrap();
    let event = |(seq, what): (usize, What)| Event {
        run: run(),
        seq: seq as u64 + 1,
        at: start + std::time::Duration::from_secs(seq as u64),
        what,
    };
    facts.into_iter().enumerate().map(event).collect()
}

fn isolation() -> Isolation {
    Isolation {
        engine: "docker 20.10.24".to_owned(),
        image: "sha256:1".to_owned(),
        user: "1000:1000".to_owned(),
        network: "none".to_owned(),
        read_only_root: true,
        capabilities_dropped: vec!["ALL".to_owned()],
        capabilities_added: Vec::new(),
        security_options: vec!["no-new-privileges".to_owned()],
        privileged: false,
        memory_bytes: 1,
        nano_cpus: 1,
        pids: 1,
        mounts: Vec::new(),
        init: true,
        execution: Execution::Helper,
        weaker: Vec::new(),
        runtime: "runc".to_owned(),
        ..Isolation::default()
    }
}

fn receipt() -> Receipt {
    Receipt::fold(&events()).unwrap()
}

#[test]
fn a_receipt_holds_what_the_events_say() {
    let receipt = receipt();
    assert_eq!(receipt.run, run());
    assert_eq!(receipt.state, RunState::Succeeded, "what is in the outbox succeeded");
    assert_eq!(receipt.inputs[0].path, "energy/house 7.csv");
    assert_eq!(receipt.inputs[0].sha256, Digest::of("input"));
    assert_eq!(receipt.script.sha256, Digest::of("script"));
    assert_eq!(receipt.image.as_ref().unwrap().substituted_base.as_deref(), Some("debian"));
    assert_eq!(receipt.isolation, Some(isolation()));
    assert_eq!(receipt.prompt.as_ref().unwrap().sha256, Digest::of("do it"));
    assert_eq!(receipt.model.name, "gpt");
    let artifacts: Vec<_> = receipt.artifacts.iter().map(|content| content.path.as_str()).collect();
    assert_eq!(artifacts, ["output/a.csv", "output/b.md"]);
    assert_eq!(receipt.artifacts[1].sha256, Digest::of("b"), "the repaired one");
    assert_eq!((receipt.turns, receipt.usage.input_tokens, receipt.usage.output_tokens), (2, 300, 20));
    assert_eq!(receipt.cost_usd, Some(Cost::from_usd(0.75)));
    assert_eq!(receipt.guardrails.len(), 2);
    assert_eq!(receipt.guardrails[1].verdict, "deny");
    assert_eq!(receipt.guardrails[1].reason.as_deref(), Some("no curl"));
    assert_eq!(receipt.checks.len(), 2);
    assert_eq!((receipt.checks[0].findings.len(), receipt.checks[1].findings.len()), (1, 0));
    assert_eq!(receipt.times.queued.to_string(), "2026-11-30T23:18:05Z");
    assert_eq!(receipt.times.started.unwrap().to_string(), "2026-11-30T23:18:06Z");
    assert_eq!(receipt.times.ended.to_string(), "2026-11-30T23:18:24Z");
    assert_eq!(receipt.times.wall_ms, 18_000);
}

#[test]
fn the_same_events_make_the_same_text_and_it_reads_back() {
    let text = receipt().to_json().unwrap();
    assert_eq!(text, receipt().to_json().unwrap());
    assert_eq!(serde_json::from_str::<Receipt>(&text).unwrap(), receipt());
    assert!(text.starts_with("{\n  \"version\": 1,\n  \"tidemill\": "), "{text}");
    assert!(text.ends_with("}\n"));
}

#[test]
fn a_call_without_a_price_leaves_the_cost_open() {
    let mut events = events();
    for event in &mut events {
        if let What::ModelResponded { turn: 1, cost, .. } = &mut event.what {
            *cost = None;
        }
    }
    assert_eq!(Receipt::fold(&events).unwrap().cost_usd, None);
}

#[test]
fn the_end_of_a_run_has_the_last_word() {
    let mut events = events();
    let mut end = events.last().unwrap().clone();
    end.what = What::RunEnded {
        state: RunState::Failed,
        report: None,
        usage: Usage { input_tokens: 7, ..Usage::default() },
        cost: None,
    };
    events.push(end);
    let receipt = Receipt::fold(&events).unwrap();
    assert_eq!((receipt.state, receipt.usage.input_tokens, receipt.cost_usd), (RunState::Failed, 7, None));
}

#[test]
fn a_log_without_its_start_makes_no_receipt() {
    for events in [Vec::new(), events()[1..].to_vec()] {
        assert_eq!(Receipt::fold(&events).unwrap_err().code(), "artifact::no_start");
    }
}

/// A project with an outbox and a folder of collected files.
struct Place {
    root: TempDir,
}

impl Place {
    fn new() -> Self {
        let root = TempDir::new().unwrap();
        fs::create_dir(root.path().join("outbox")).unwrap();
        fs::create_dir(root.path().join("collected")).unwrap();
        Self { root }
    }

    fn outbox(&self) -> PathBuf {
        self.root.path().join("outbox")
    }

    fn destination(&self) -> Destination {
        Destination {
            outbox: self.outbox(),
            workflow: "energy".to_owned(),
            name: folder_name(&[input()], &run()),
        }
    }

    fn artifact(&self, path: &str, content: &str) -> Artifact {
        let file = self.root.path().join("collected").join(path.replace('/', "_"));
        fs::write(&file, content).unwrap();
        Artifact {
            path: WorkspacePath::parse(path).unwrap(),
            file,
            size: content.len() as u64,
            digest: Digest::of(content),
        }
    }

    fn artifacts(&self) -> [Artifact; 2] {
        [self.artifact("output/a.csv", "a"), self.artifact("output/charts/b.md", "b")]
    }

    fn folder(&self) -> PathBuf {
        self.outbox().join(format!("energy/house_7-{RUN}"))
    }

    fn publish(&self) -> Result<tidemill::artifact::Published, Diagnostic> {
        publish(&self.destination(), &self.artifacts(), &receipt())
    }

    /// Everything in the outbox below the workflow's folder.
    fn listing(&self) -> Vec<String> {
        list(&self.outbox().join("energy"))
    }
}

fn list(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else {
        return found;
    };
    for entry in entries {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(list(&entry.path()).into_iter().map(|below| format!("{name}/{below}")));
            found.push(name + "/");
        } else {
            found.push(name);
        }
    }
    found.sort();
    found
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn artifacts_and_receipt_are_published_as_one_folder() {
    let place = Place::new();
    let published = place.publish().unwrap();
    let folder = place.folder();
    assert_eq!(published.folder, folder);
    assert_eq!(published.artifacts, [folder.join("a.csv"), folder.join("charts/b.md")]);
    assert_eq!(published.receipt, folder.join("receipt.json"));
    let name = format!("house_7-{RUN}");
    assert_eq!(
        place.listing(),
        [
            format!("{name}/"),
            format!("{name}/a.csv"),
            format!("{name}/charts/"),
            format!("{name}/charts/b.md"),
            format!("{name}/receipt.json"),
        ]
    );
    assert_eq!(fs::read_to_string(folder.join("charts/b.md")).unwrap(), "b");
    assert_eq!(fs::read_to_string(&published.receipt).unwrap(), receipt().to_json().unwrap());
    for (path, wanted) in [
        (folder.clone(), 0o755),
        (folder.join("charts"), 0o755),
        (folder.join("a.csv"), 0o644),
        (folder.join("receipt.json"), 0o644),
    ] {
        assert_eq!(mode(&path), wanted, "{}", path.display());
    }
}

#[test]
fn without_a_common_folder_paths_stay_as_they_are() {
    let place = Place::new();
    let artifacts = [place.artifact("output/a.csv", "a"), place.artifact("report.md", "r")];
    let published = publish(&place.destination(), &artifacts, &receipt()).unwrap();
    let folder = place.folder();
    assert_eq!(published.artifacts, [folder.join("output/a.csv"), folder.join("report.md")]);
    assert_eq!(fs::read_to_string(folder.join("output/a.csv")).unwrap(), "a");
}

#[test]
fn a_second_publication_finds_the_first() {
    let place = Place::new();
    let first = place.publish().unwrap();
    let before = fs::metadata(&first.receipt).unwrap().modified().unwrap();
    let mut events = events();
    events.push(Event { what: What::KeptAside { folder: "later".to_owned() }, ..events[0].clone() });
    let later = Receipt::fold(&events).unwrap();
    assert_eq!(publish(&place.destination(), &place.artifacts(), &later).unwrap(), first);
    assert_eq!(fs::metadata(&first.receipt).unwrap().modified().unwrap(), before);
}

#[test]
fn another_content_in_the_same_place_is_left_alone() {
    let place = Place::new();
    place.publish().unwrap();
    fs::write(place.folder().join("a.csv"), "edited").unwrap();
    let error = place.publish().unwrap_err();
    assert_eq!(error.code(), "artifact::taken");
    assert_eq!(fs::read_to_string(place.folder().join("a.csv")).unwrap(), "edited");

    let place = Place::new();
    fs::create_dir_all(place.folder()).unwrap();
    assert_eq!(place.publish().unwrap_err().code(), "artifact::taken");
    assert_eq!(list(&place.folder()), [""; 0]);
}

#[test]
fn what_a_crash_left_staged_is_replaced() {
    let place = Place::new();
    let staging = place.outbox().join(format!("energy/.staging-{RUN}"));
    fs::create_dir_all(staging.join("charts")).unwrap();
    fs::write(staging.join("a.csv"), "half").unwrap();
    fs::write(staging.join("stray"), "x").unwrap();
    place.publish().unwrap();
    assert!(!staging.exists());
    assert_eq!(fs::read_to_string(place.folder().join("a.csv")).unwrap(), "a");
    assert!(!place.folder().join("stray").exists());
}

#[test]
fn a_staging_place_that_is_a_link_leads_nowhere() {
    let place = Place::new();
    let precious = place.root.path().join("precious");
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("file"), "x").unwrap();
    fs::create_dir(place.outbox().join("energy")).unwrap();
    symlink(&precious, place.outbox().join(format!("energy/.staging-{RUN}"))).unwrap();
    place.publish().unwrap();
    assert_eq!(list(&precious), ["file"]);
}

#[test]
fn a_file_that_changed_since_its_check_is_not_published() {
    let place = Place::new();
    let artifacts = place.artifacts();
    fs::write(&artifacts[1].file, "B").unwrap();
    let error = publish(&place.destination(), &artifacts, &receipt()).unwrap_err();
    assert_eq!(error.code(), "artifact::changed");
    assert_eq!(place.listing(), [""; 0], "half a result is left");
}

#[test]
fn a_file_that_became_a_link_or_vanished_is_not_published() {
    let place = Place::new();
    let artifacts = place.artifacts();
    fs::remove_file(&artifacts[1].file).unwrap();
    let error = publish(&place.destination(), &artifacts, &receipt()).unwrap_err();
    assert_eq!(error.code(), "artifact::unreadable");
    symlink(&artifacts[0].file, &artifacts[1].file).unwrap();
    let error = publish(&place.destination(), &artifacts, &receipt()).unwrap_err();
    assert_eq!(error.code(), "artifact::unreadable");
    assert_eq!(place.listing(), [""; 0], "half a result is left");
}

#[test]
fn an_output_cannot_stand_in_for_the_receipt() {
    let place = Place::new();
    let artifacts = [place.artifact("output/receipt.json", "{}")];
    let error = publish(&place.destination(), &artifacts, &receipt()).unwrap_err();
    assert_eq!(error.code(), "artifact::receipt_taken");
}

#[test]
fn an_outbox_that_is_missing_or_no_folder_is_said_so() {
    let place = Place::new();
    let outbox = place.outbox();
    let message = || {
        let error = place.publish().unwrap_err();
        assert_eq!(error.code(), "artifact::outbox");
        assert!(error.advice().unwrap().contains("tidemill.toml"));
        error.message().to_owned()
    };
    fs::remove_dir(&outbox).unwrap();
    assert!(message().ends_with("does not exist"));
    fs::write(&outbox, "x").unwrap();
    assert!(message().ends_with("is not a folder"));
    fs::remove_file(&outbox).unwrap();
    symlink(place.root.path().join("collected"), &outbox).unwrap();
    assert!(message().contains("is a symbolic link"));
    fs::remove_file(&outbox).unwrap();
    fs::create_dir(&outbox).unwrap();
    symlink(place.root.path().join("collected"), outbox.join("energy")).unwrap();
    assert!(message().contains("is a symbolic link"));
}

#[test]
fn a_name_that_climbs_out_is_refused() {
    let place = Place::new();
    for name in ["", ".", "..", "../x", "a/b", ".hidden"] {
        let destination = Destination { name: name.to_owned(), ..place.destination() };
        let error = publish(&destination, &place.artifacts(), &receipt()).unwrap_err();
        assert_eq!(error.code(), "artifact::bad_name", "{name:?}");
    }
}

/// A file system of 64 KB, for as long as this lives.
struct Tiny(PathBuf);

impl Tiny {
    /// Needs root: elsewhere there is none, and the test of a full disk has nothing to fill.
    fn mount(at: &Path) -> Option<Self> {
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "tidemill-test"]).arg(at).output();
        mounted.is_ok_and(|output| output.status.success()).then(|| Self(at.to_owned()))
    }

    fn make_read_only(&self) {
        let output = Command::new("mount").args(["-o", "remount,ro"]).arg(&self.0).output();
        assert!(output.expect("mount runs").status.success());
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
    }
}

#[test]
fn a_full_or_read_only_disk_is_said_so_and_nothing_is_half_there() {
    let place = Place::new();
    let Some(tiny) = Tiny::mount(&place.outbox()) else {
        return;
    };
    let artifacts =
        [place.artifact("output/a.csv", "a"), place.artifact("output/b.csv", &"b".repeat(200_000))];
    let error = publish(&place.destination(), &artifacts, &receipt()).unwrap_err();
    assert_eq!(error.code(), "artifact::disk_full", "{error}");
    assert!(error.advice().unwrap().contains("drop the input again"));
    assert_eq!(place.listing(), [""; 0], "half a result is left");
    place.publish().expect("there is space for the small ones");

    tiny.make_read_only();
    let other = Destination { name: "other".to_owned(), ..place.destination() };
    let error = publish(&other, &place.artifacts(), &receipt()).unwrap_err();
    assert_eq!(error.code(), "artifact::read_only", "{error}");
}

#[test]
fn files_of_a_rejected_run_are_kept_with_what_was_wrong() {
    let place = Place::new();
    let kept = place.root.path().join(".tidemill/runs/x/kept");
    let findings = [
        Finding::new("text.words", "the text is too short").path("output/b.md").found("3 words"),
        Finding::new("csv.type", "a cell is no number").found("\u{1b}[2J"),
    ];
    keep_aside(&kept, &place.artifacts(), &findings).unwrap();
    assert_eq!(fs::read_to_string(kept.join("files/output/charts/b.md")).unwrap(), "b");
    let json: Vec<Finding> = serde_json::from_slice(&fs::read(kept.join("findings.json")).unwrap()).unwrap();
    assert_eq!(json, findings);
    let text = fs::read_to_string(kept.join("findings.txt")).unwrap();
    assert_eq!(
        text,
        "1. output/b.md: the text is too short (found 3 words)\n2. a cell is no number (found \\u{1b}[2J)\n"
    );

    // A second call replaces the first, and keeps a file whatever became of it.
    let mut artifacts = place.artifacts();
    fs::write(&artifacts[0].file, "changed").unwrap();
    artifacts[1].file = kept.join("files/output/charts/b.md");
    keep_aside(&kept, &artifacts, &[]).unwrap();
    assert_eq!(fs::read_to_string(kept.join("files/output/a.csv")).unwrap(), "changed");
    assert_eq!(fs::read_to_string(kept.join("files/output/charts/b.md")).unwrap(), "b");
    assert!(fs::read_to_string(kept.join("findings.txt")).unwrap().contains("nothing was found"));
    assert_eq!(list(kept.parent().unwrap()).iter().filter(|name| name.contains("new")).count(), 0);
}
