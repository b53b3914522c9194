//! Nothing is left of any daemon.

use std::collections::BTreeSet;
use std::fs;

use tokio::process::Command;

use crate::evidence::{Evidence, entries, files_below};
use crate::proofs::{Proof, Wrong};

/// How the labels of what is on the engine are shown.
const OWNERS: &str = r#"{{.Label "tidemill.owner"}} {{.Label "tidemill.run"}}"#;

/// In the project: what a run needs only while it works, and what is only there half-way.
pub fn in_files(evidence: &Evidence<'_>) -> Proof {
    let project = evidence.project;
    let mut left = Vec::new();
    for folder in [".tidemill/runs", ".tidemill/claimed", ".tidemill/local"] {
        left.extend(entries(&project.path(folder)));
    }
    let half = |path: &std::path::PathBuf| {
        path.iter().any(|part| {
            part.to_string_lossy().starts_with(".staging-") || part.to_string_lossy().starts_with(".reason-")
        })
    };
    for folder in ["outbox", "processed", "failed"] {
        left.extend(files_below(&project.path(folder)).into_iter().filter(half));
    }
    let wrong = left.iter().map(|path| Wrong::new(format!("{} is left", path.display()))).collect();
    Proof {
        name: "nothing is left in the project",
        numbers: "runs, claimed files, half results".to_owned(),
        wrong,
    }
}

/// On the engine, among the temporary files, and among the processes.
pub async fn on_the_machine(evidence: &Evidence<'_>) -> Proof {
    let mut wrong = Vec::new();
    for (what, listing) in
        [("container", &["ps", "-a"][..]), ("volume", &["volume", "ls"]), ("network", &["network", "ls"])]
    {
        let arguments = [listing, &["--filter", "label=tidemill.owner", "--format", OWNERS]].concat();
        let listed = Command::new("docker").args(arguments).output().await.expect("the docker command");
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let ours = listed.lines().filter(|line| is_of(line, '/', evidence.pids));
        wrong.extend(ours.map(|line| Wrong::new(format!("a {what} is left of {line}"))));
    }
    for file in entries(&std::env::temp_dir()) {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let label = name.strip_prefix("tidemill-of_");
        if label.is_some_and(|label| is_of(label, '_', evidence.pids)) {
            wrong.push(Wrong::new(format!("{} is left", file.display())));
        }
    }
    let root = evidence.project.root().display().to_string();
    for process in entries("/proc".as_ref()) {
        let line = fs::read(process.join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        // The test itself is not told of the project.
        if line.contains(&root) {
            wrong.push(Wrong::new(format!("{} still runs: {line}", process.display())));
        }
    }
    let numbers = "containers, volumes, networks, temporary files, processes".to_owned();
    Proof { name: "nothing is left on the machine", numbers, wrong }
}

/// Whether an owner's label is of one of these processes.
fn is_of(label: &str, between: char, pids: &BTreeSet<u32>) -> bool {
    label.split(between).nth(2).and_then(|pid| pid.parse().ok()).is_some_and(|pid| pids.contains(&pid))
}
