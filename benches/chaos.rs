//! `cargo bench --bench chaos [-- KILLS]`: `tidemill watch`, killed with SIGKILL again and again at random moments.
//!
//! Each round drops a file, starts the daemon, and kills it some time later, while runs make sandboxes, work in them,
//! publish, and put inputs away. In the end the daemon works off what is left. Then every input must have been
//! published once (or lie among the failed ones with the reason: a run that is interrupted three times is given up),
//! and nothing of any of the processes may be on the engine, among the temporary files, or in the runs' folders. With
//! `--profile dev` nothing needs to be built for release.

#![expect(clippy::expect_used, clippy::print_stdout, reason = "a benchmark that cannot run says so and ends")]

#[path = "../tests/support/engine.rs"]
#[allow(dead_code, unused_imports, reason = "the tests use the rest")]
mod engine;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::process::{Child, Command};

const KILLS: usize = 200;
/// A daemon lives for at most so long.
const LIFE: Duration = Duration::from_millis(4000);
/// How often it is looked whether all is done, and for how long.
const LOOK: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(1800);
/// How the labels of what is on the engine are shown.
const OWNERS: &str = r#"{{.Label "tidemill.owner"}}"#;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let asked = std::env::args().skip(1).find_map(|argument| argument.parse().ok());
    let kills: usize = asked.unwrap_or(KILLS);
    let project = project(&engine::small_image().await.digest);
    let root = project.path();
    let (mut pids, mut hit) = (BTreeSet::new(), 0);
    let start = Instant::now();
    for number in 0..kills {
        drop_file(root, number);
        let mut child = watch(root);
        pids.extend(child.id());
        tokio::time::sleep(LIFE.mul_f64(fastrand::f64())).await;
        child.kill().await.expect("killed");
        hit += usize::from(left_of(&pids).await > 0);
    }
    let (took, done) = (start.elapsed().as_secs_f64(), published(root).len());
    println!("{kills} kills in {took:.0} s, {hit} of them left something; {done} inputs published so far");
    let mut child = watch(root);
    pids.extend(child.id());
    let since = Instant::now();
    while published(root).len() + given_up(root).len() < kills && since.elapsed() < PATIENCE {
        tokio::time::sleep(LOOK).await;
    }
    println!("the rest was worked off in {:.0} s", since.elapsed().as_secs_f64());
    end(&mut child).await;
    let (published, given_up) = (published(root), given_up(root));
    let is_known = |number: &usize| {
        published.contains_key(&content(*number)) || given_up.contains(&format!("{number}.txt"))
    };
    let lost = (0..kills).filter(|number| !is_known(number)).count();
    let twice = published.values().filter(|folders| folders.len() > 1).count();
    let left = left_of(&pids).await + files(&root.join(".tidemill/runs")).len();
    let stopped = given_up.len();
    println!("inputs {kills}: published {}, given up after three interruptions {stopped}", published.len());
    println!("lost {lost}, published twice {twice}, left on the engine and in files {left}");
    for (what, folders) in published.iter().filter(|(_, folders)| folders.len() > 1) {
        println!("{what}: {folders:?}");
    }
    assert!(lost == 0 && twice == 0 && left == 0, "see above");
}

/// A workflow that copies its input, and a model that has it do so.
fn project(digest: &str) -> TempDir {
    let folder = TempDir::with_prefix("tidemill-chaos-").expect("a temporary folder");
    let put = |path: &str, text: &str| {
        let path: PathBuf = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    };
    put(
        "tidemill.toml",
        "[watch]\nsettle = \"100ms\"\n\n[models.actor]\nprovider = \"scripted\"\nscript = \"models/actor.lua\"\n",
    );
    put(
        "models/actor.lua",
        r#"local test = require "tidemill.test"
return test.script {
  test.shell "mkdir -p output && cp input/data.txt output/a.txt && seq 100000",
  test.say "done",
}
"#,
    );
    put(
        "workflows/chaos.lua",
        &format!(
            r#"local mill, expect = require "tidemill", require "tidemill.expect"
return mill.workflow {{
  name = "chaos",
  triggers = {{ mill.drop {{ glob = "*.txt" }} }},
  image = mill.image "{digest}",
  manifest = {{ ["input/data.txt"] = mill.input() }},
  agent = {{ model = "actor", instructions = "Work.", max_turns = 8 }},
  prompt = "Copy it.",
  outputs = {{ ["output/a.txt"] = expect.text {{ min_words = 1 }} }},
}}
"#
        ),
    );
    fs::create_dir(folder.path().join("inbox")).expect("a folder");
    folder
}

fn content(number: usize) -> String {
    format!("input number {number}")
}

fn drop_file(root: &Path, number: usize) {
    fs::write(root.join(format!("inbox/{number}.txt")), content(number)).expect("a dropped file");
}

fn watch(root: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_tidemill"))
        .args(["watch", "--project"])
        .arg(root)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("the tidemill binary")
}

/// SIGTERM, and its end.
async fn end(child: &mut Child) {
    let pid = child.id().expect("a running process").to_string();
    Command::new("kill").args(["-TERM", &pid]).status().await.expect("a signal");
    child.wait().await.expect("an end");
}

/// What was published, and where each of it stands.
fn published(root: &Path) -> BTreeMap<String, Vec<PathBuf>> {
    let mut found: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for file in files(&root.join("outbox")) {
        // A half-published folder has another name until it is whole.
        let hidden = file.iter().any(|part| part.to_string_lossy().starts_with('.') && part != ".");
        if file.file_name().is_some_and(|name| name == "a.txt") && !hidden {
            let text = fs::read_to_string(&file).expect("an artifact");
            found.entry(text).or_default().push(file);
        }
    }
    found
}

/// Inputs whose run was interrupted too often, and which lie beside the reason.
fn given_up(root: &Path) -> BTreeSet<String> {
    let reason = |file: PathBuf| Some(file.file_name()?.to_str()?.strip_suffix(".reason.txt")?.to_owned());
    files(&root.join("failed")).into_iter().filter_map(reason).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let below = entries.flatten().map(|entry| entry.path());
    below.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// How many things of these processes are on the engine, and among the temporary files.
async fn left_of(pids: &BTreeSet<u32>) -> usize {
    let mut left = 0;
    for listing in [&["ps", "-a"][..], &["volume", "ls"], &["network", "ls"]] {
        let arguments = [listing, &["--filter", "label=tidemill.owner", "--format", OWNERS]].concat();
        let listed = Command::new("docker").args(arguments).output().await.expect("the docker command");
        let owners = String::from_utf8_lossy(&listed.stdout).into_owned();
        left += owners.lines().filter(|owner| is_of(owner, '/', pids)).count();
    }
    let temporary = fs::read_dir(std::env::temp_dir()).expect("temporary files").flatten();
    left + temporary.filter(|entry| is_of(&entry.file_name().to_string_lossy(), '_', pids)).count()
}

/// Whether an owner's label, or a name that holds one, is of one of these processes.
fn is_of(label: &str, between: char, pids: &BTreeSet<u32>) -> bool {
    let label = label.strip_prefix("tidemill-of_").unwrap_or(label);
    label.split(between).nth(2).and_then(|pid| pid.parse().ok()).is_some_and(|pid| pids.contains(&pid))
}
