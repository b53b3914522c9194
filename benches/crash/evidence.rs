//! What is looked at when all is over.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use tidemill::artifact::Receipt;
use tidemill::config::Project as Settings;
use tidemill::event::Event;
use tidemill::store::{InputRow, RunFilter, RunRow, Store};

use crate::kind::Kind;
use crate::models::Ask;
use crate::project::Project;

/// Everything that is known.
pub struct Evidence<'a> {
    /// The project.
    pub project: &'a Project,
    /// What was dropped.
    pub dropped: &'a [String],
    /// What was dropped too slowly to say anything of.
    pub spoilt: &'a [String],
    /// What the models were asked.
    pub asks: Vec<Ask>,
    /// What was wrong with that.
    pub complaints: Vec<String>,
    /// Every daemon's process id.
    pub pids: &'a BTreeSet<u32>,
    /// When each of them was ended.
    pub ends: &'a [Timestamp],
    /// What is to be said of those that ended by themselves.
    pub fallen: &'a [String],
    /// Every run with its log.
    pub runs: Vec<(RunRow, Vec<Event>)>,
    /// The ledger.
    pub inputs: Vec<InputRow>,
    /// What stands in the outbox.
    pub outbox: Vec<Folder>,
}

/// A folder in the outbox.
pub struct Folder {
    /// Where.
    pub path: PathBuf,
    /// Of which workflow.
    pub kind: Option<Kind>,
    /// The receipt, when there is a good one.
    pub receipt: Option<Receipt>,
    /// Every other file by its name.
    pub files: BTreeMap<String, String>,
}

impl Folder {
    /// The run that the receipt names.
    pub fn run(&self) -> Option<String> {
        self.receipt.as_ref().map(|receipt| receipt.run.as_str().to_owned())
    }
}

/// The runs with their logs, and the ledger.
pub async fn recorded(store: &Store) -> (Vec<(RunRow, Vec<Event>)>, Vec<InputRow>) {
    let mut runs = Vec::new();
    for row in store.runs(&RunFilter::default()).await.expect("the runs") {
        let events = store.all_events(&row.id).await.expect("a log");
        runs.push((row, events));
    }
    let inputs = store.latest_inputs(None, u32::MAX).await.expect("the ledger");
    (runs, inputs)
}

/// The store of a project.
pub async fn store(project: &Project) -> Store {
    let settings = Settings::open(project.root()).expect("the project");
    Store::open(&settings.state()).await.expect("its store")
}

/// Every folder that stands in the outbox, half-published ones included.
pub fn outbox(project: &Project) -> Vec<Folder> {
    let workflows = entries(&project.path("outbox"));
    workflows.iter().flat_map(|workflow| entries(workflow)).map(folder).collect()
}

fn folder(path: PathBuf) -> Folder {
    let mut files = BTreeMap::new();
    let mut receipt = None;
    for file in files_below(&path) {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let name = file.strip_prefix(&path).expect("below").display().to_string();
        if name == "receipt.json" {
            receipt = serde_json::from_str(&text).ok();
        } else {
            files.insert(name, text);
        }
    }
    let workflow = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    Folder { kind: workflow.and_then(Kind::of), path, receipt, files }
}

/// What stands in a folder; nothing when it is missing.
pub fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// All files below a folder.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let below = entries(folder).into_iter();
    below.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}
