//! What is found afterwards: in the outbox, in the logs, on the engine.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use tidemill::event::What;
use tidemill::report::line::{Detail, describe};
use tidemill::store::RunFilter;
use tokio::process::Command;

use crate::mill::Mill;

/// How the labels of what is on the engine are shown.
const OWNERS: &str = r#"{{.Label "tidemill.owner"}}"#;

/// What was published, by the input's number: every text there is of it.
pub fn published(root: &Path) -> BTreeMap<usize, Vec<String>> {
    let mut found: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for file in files(&root.join("outbox")) {
        // A half-published folder has another name until it is whole.
        let hidden = file.iter().any(|part| part.to_string_lossy().starts_with('.') && part != ".");
        if file.file_name().is_some_and(|name| name == "a.txt") && !hidden {
            let text = fs::read_to_string(&file).expect("an artifact");
            let number = text.lines().next().and_then(|line| line.rsplit(' ').next()?.parse().ok());
            found.entry(number.expect("an input's number")).or_default().push(text);
        }
    }
    found
}

/// Why inputs lie among the failed ones.
pub fn given_up(root: &Path) -> Vec<String> {
    let is_reason = |file: &PathBuf| file.to_string_lossy().ends_with(".reason.txt");
    let reasons = files(&root.join("failed")).into_iter().filter(is_reason);
    reasons.map(|file| fs::read_to_string(file).expect("a reason")).collect()
}

/// How many requests were answered twice, and how often runs went on. A request that was lost with its process was
/// never answered, as far as anybody can tell; each such is booked in its run's log.
pub async fn answers_paid_twice(mill: &Mill) -> (usize, usize) {
    let mut asked: HashMap<String, usize> = HashMap::new();
    for body in mill.requests() {
        *asked.entry(body.to_string()).or_default() += 1;
    }
    let again: usize = asked.values().map(|times| times - 1).sum();
    let store = mill.store().await;
    let (mut lost, mut resumed) = (0, 0);
    for run in store.runs(&RunFilter::default()).await.expect("the runs") {
        for event in store.all_events(&run.id).await.expect("its events") {
            lost += usize::from(matches!(event.what, What::ModelCut { .. }));
            resumed += usize::from(matches!(event.what, What::Resumed { .. }));
        }
    }
    (again.saturating_sub(lost), resumed)
}

/// The stories of all runs that did not do what they should, line by line.
pub async fn stories(mill: &Mill, numbers: &BTreeSet<usize>) -> Vec<String> {
    let store = mill.store().await;
    let mut lines = Vec::new();
    for run in store.runs(&RunFilter::default()).await.expect("the runs") {
        let name = run.inputs.first().map(|input| input.path.display()).unwrap_or_default();
        let number = name.trim_end_matches(".txt").parse();
        if number.is_ok_and(|number| numbers.contains(&number)) {
            for event in store.all_events(&run.id).await.expect("its events") {
                let words = describe(&event, Detail::Short).unwrap_or_default();
                lines.push(format!("{name} {} {}", event.at, words.replace('\n', " | ")));
            }
        }
    }
    lines
}

/// Files that are only needed while a run works, and sandboxes that are awaited.
pub fn waiting_files(root: &Path) -> usize {
    let state = root.join(".tidemill");
    files(&state.join("runs")).len() + files(&state.join("sandboxes")).len()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let below = entries.flatten().map(|entry| entry.path());
    below.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// How many things of these processes are on the engine, and among the temporary files.
pub async fn left_of(pids: &BTreeSet<u32>) -> usize {
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
