//! The project that is killed, its daemon, and its model behind the wire.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tidemill::store::Store;
use tokio::process::{Child, Command};

use crate::wire::{Protocol, Reply, Seen, Wire};

/// How long the model thinks.
const THINKING: Duration = Duration::from_millis(150);

/// A project with one workflow, and the server that answers its runs.
pub struct Mill {
    folder: TempDir,
    wire: Wire,
}

impl Mill {
    pub async fn build(image: &str) -> Self {
        let wire = Wire::start(Protocol::Responses).await;
        wire.otherwise(|seen| {
            tokio::task::block_in_place(|| std::thread::sleep(THINKING));
            reply(seen)
        });
        let folder = TempDir::with_prefix("tidemill-crash-").expect("a temporary folder");
        let put = |path: &str, text: &str| {
            let path: PathBuf = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        };
        let config = format!(
            "[watch]\nsettle = \"100ms\"\n\n[models.actor]\nprovider = \"openai\"\nbase_url = \"{}\"\n",
            wire.base_url()
        );
        put("tidemill.toml", &config);
        put("workflows/crash.lua", &workflow(image));
        fs::create_dir(folder.path().join("inbox")).expect("a folder");
        Self { folder, wire }
    }

    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    pub fn drop_file(&self, number: usize) {
        fs::write(self.root().join(format!("inbox/{number}.txt")), content(number)).expect("a dropped file");
    }

    pub fn watch(&self) -> Child {
        Command::new(env!("CARGO_BIN_EXE_tidemill"))
            .args(["watch", "--project"])
            .arg(self.root())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("the tidemill binary")
    }

    /// The bodies of all requests to the model.
    pub fn requests(&self) -> Vec<Value> {
        assert!(self.wire.complaints().is_empty(), "{:?}", self.wire.complaints());
        self.wire.requests().into_iter().map(|seen| seen.body).collect()
    }

    pub fn calls(&self) -> usize {
        self.wire.requests().len()
    }

    pub async fn store(&self) -> Store {
        Store::open(&self.root().join(".tidemill")).await.expect("the store")
    }
}

/// SIGTERM, and its end.
pub async fn end(child: &mut Child) {
    let pid = child.id().expect("a running process").to_string();
    Command::new("kill").args(["-TERM", &pid]).status().await.expect("a signal");
    child.wait().await.expect("an end");
}

/// What a run publishes when each of its commands ran once.
pub fn artifact(number: usize) -> String {
    format!("{}\none\ntwo\nthree\n", content(number))
}

/// One line, and a word that tells it from every other input.
fn content(number: usize) -> String {
    format!("input number {number}")
}

/// Three turns of work, the second with two commands, and the last word. Every run's conversation begins with its id.
fn reply(seen: &Seen) -> Reply {
    let shell = |command: &str| ("shell", json!({ "command": command, "timeout_seconds": null }));
    let told = seen.items().iter().filter(|item| item["type"] == "function_call_output").count();
    match told {
        0 => Reply::calls([shell("sleep 0.4; echo one >> log; seq 1000")]).saying("I begin."),
        1 => Reply::calls([shell("sleep 0.2; echo two >> log"), shell("sleep 0.2; echo three >> log")]),
        3 => Reply::calls([shell(
            "mkdir -p output && { cat input/data.txt; echo; cat log; } > output/a.txt && sleep 0.2",
        )]),
        _ => Reply::text("done"),
    }
}

fn workflow(image: &str) -> String {
    format!(
        r#"local mill, expect = require "tidemill", require "tidemill.expect"
return mill.workflow {{
  name = "crash",
  triggers = {{ mill.drop {{ glob = "*.txt" }} }},
  image = mill.image "{image}",
  manifest = {{ ["input/data.txt"] = mill.input() }},
  agent = {{ model = "actor", instructions = "Work.", max_turns = 20 }},
  prompt = function(run) return "Copy it, run " .. run.id .. "." end,
  outputs = {{ ["output/a.txt"] = expect.text {{ min_words = 1 }} }},
}}
"#
    )
}
