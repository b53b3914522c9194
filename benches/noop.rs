//! `cargo bench --bench noop [-- TURNS...]`: whole runs of the `noop` workflow against the wire double.
//!
//! Each run is a process of its own: the real binary, the real protocol, a real container. Printed are wall time,
//! processor time, peak memory, and what a turn costs besides the command and the model's answer. Compare runs of one
//! machine with each other, not with another machine's.

#![expect(clippy::expect_used, clippy::print_stdout, reason = "a benchmark that cannot run says so and ends")]
#![expect(
    clippy::cast_precision_loss,
    clippy::large_futures,
    reason = "numbers for show; nothing here is hot"
)]

#[path = "../tests/support/wire.rs"]
#[allow(dead_code, unused_imports, reason = "the tests use the rest")]
mod wire;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;
use wire::{Protocol, Reply, Wire};

/// Turns of the runs that are measured.
const TURNS: [usize; 2] = [20, 100];
/// How often a running process is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// What one run took.
struct Measured {
    turns: usize,
    wall: Duration,
    cpu: Duration,
    peak_kib: u64,
    /// Milliseconds in commands and in answers of the model, as the run's own events say.
    outside_millis: u64,
    /// Milliseconds from the first turn to the last answer.
    loop_millis: u64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let asked: Vec<usize> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let turns = if asked.is_empty() { TURNS.to_vec() } else { asked };
    // The first run makes the image ready and warms what there is to warm.
    measure(2).await;
    println!("turns   wall ms   ms/turn   cpu ms   peak MiB   host ms/turn (without commands and model)");
    let mut all = Vec::new();
    for turns in turns {
        let measured = measure(turns).await;
        println!("{}", measured.row());
        all.push(measured);
    }
    if let [first, .., last] = all.as_slice()
        && last.turns > first.turns
    {
        let more = (last.turns - first.turns) as f64;
        let wall = last.wall.saturating_sub(first.wall).as_secs_f64();
        println!("each further turn: {:.1} ms", wall * 1e3 / more);
    }
}

impl Measured {
    fn row(&self) -> String {
        let millis = |duration: Duration| duration.as_secs_f64() * 1e3;
        let host = self.loop_millis.saturating_sub(self.outside_millis) as f64 / self.turns as f64;
        format!(
            "{:>5} {:>9.0} {:>9.1} {:>8.0} {:>10.1} {host:>14.2}",
            self.turns,
            millis(self.wall),
            millis(self.wall) / self.turns as f64,
            millis(self.cpu),
            self.peak_kib as f64 / 1024.0,
        )
    }
}

async fn measure(turns: usize) -> Measured {
    let wire = Wire::start(Protocol::Responses).await;
    wire.otherwise(move |seen| match seen.outputs().len() {
        done if done + 1 < turns => {
            Reply::calls([("shell", json!({ "command": "true", "timeout_seconds": null }))])
        }
        done if done + 1 == turns => {
            let command = "mkdir -p output && echo done > output/done.txt";
            Reply::calls([("shell", json!({ "command": command, "timeout_seconds": null }))])
        }
        _ => Reply::text("done"),
    });
    let project = project(&wire.base_url());
    let start = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_tidemill"))
        .args(["run", "noop", "--json", "--project"])
        .arg(project.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("the tidemill binary");
    let pid = child.id().expect("a running process");
    let mut stdout = child.stdout.take().expect("its output");
    let reading = tokio::spawn(async move {
        let mut text = String::new();
        tokio::io::AsyncReadExt::read_to_string(&mut stdout, &mut text).await.expect("its events");
        text
    });
    let (mut cpu, mut peak_kib) = (Duration::ZERO, 0);
    let status = loop {
        tokio::select! {
            status = child.wait() => break status.expect("an exit"),
            () = tokio::time::sleep(LOOK) => {
                cpu = cpu_of(pid).unwrap_or(cpu);
                peak_kib = peak_of(pid).unwrap_or(peak_kib);
            }
        }
    };
    let wall = start.elapsed();
    assert!(status.success(), "the run ended with {status}");
    assert!(wire.complaints().is_empty(), "{:?}", wire.complaints());
    let events = reading.await.expect("its events");
    let (loop_millis, outside_millis) = loop_of(&events);
    Measured { turns, wall, cpu, peak_kib, outside_millis, loop_millis }
}

/// This repository's image and workflow, with the wire double as its model.
fn project(base_url: &str) -> TempDir {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = TempDir::with_prefix("tidemill-bench-").expect("a temporary folder");
    let copy = |path: &str| {
        let target: PathBuf = folder.path().join(path);
        std::fs::create_dir_all(target.parent().expect("a folder")).expect("a folder");
        std::fs::copy(repository.join(path), target).expect("a copy");
    };
    ["workflows/noop.lua", "images/python-data/Dockerfile", "images/base/bootstrap"]
        .into_iter()
        .for_each(copy);
    let config = format!(
        "[build]\nnetwork = \"host\"\nca_bundle = \"host\"\n\n[bases]\n\"python:3.12-slim\" = \"images/base/bootstrap\"\n\n\
         [models.\"gpt-5.4\"]\nprovider = \"openai\"\nbase_url = \"{base_url}\"\n"
    );
    std::fs::write(folder.path().join("tidemill.toml"), config).expect("a project");
    folder
}

/// From the first request to the last answer, and how much of it went by in commands and in the model.
fn loop_of(events: &str) -> (u64, u64) {
    let (mut outside, mut first, mut last) = (0, None, None);
    for event in events.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let at: Option<jiff::Timestamp> = event["at"].as_str().and_then(|text| text.parse().ok());
        match event["what"]["type"].as_str() {
            Some("model_requested") => first = first.or(at),
            Some("model_responded" | "tool_ended") => {
                outside += event["what"]["millis"].as_u64().unwrap_or(0);
                last = at;
            }
            _ => {}
        }
    }
    let whole = first.zip(last).map_or(0, |(first, last)| last.as_millisecond() - first.as_millisecond());
    (u64::try_from(whole).unwrap_or(0), outside)
}

/// User and system time so far, in the kernel's ticks of 10 ms.
fn cpu_of(pid: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let ticks: u64 = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks * 10))
}

/// Peak resident memory so far, in KiB.
fn peak_of(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().trim_end_matches(" kB").parse().ok()
}
