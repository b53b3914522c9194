//! Every file was put away: none is left in the inbox or on its way, none is there twice.

use std::fs;

use tidemill::event::state::InputState;

use crate::evidence::{Evidence, files_below};
use crate::proofs::{Proof, Wrong};

/// Files and the ledger agree that all is done.
pub fn put_away(evidence: &Evidence<'_>) -> Proof {
    let mut wrong = Vec::new();
    let processed = files_below(&evidence.project.path("processed"));
    let texts: Vec<String> = processed.iter().filter_map(|path| fs::read_to_string(path).ok()).collect();
    for content in evidence.dropped {
        let of_it = texts.iter().filter(|text| *text == content).count();
        if of_it != 1 {
            wrong.push(Wrong::new(format!("`{content}` stands in processed/ {of_it} times")));
        }
    }
    for folder in ["inbox", ".tidemill/claimed", "failed"] {
        let files = files_below(&evidence.project.path(folder));
        wrong.extend(files.iter().map(|file| Wrong::new(format!("{} is left", file.display()))));
    }
    for row in &evidence.inputs {
        if !matches!(row.state, InputState::Done | InputState::Gone) {
            let (path, state) = (row.path.display(), row.state);
            wrong.push(Wrong::new(format!("the ledger has {path} as {state:?}: {:?}", row.reason)));
        }
    }
    let numbers = format!("{} files, {} rows of the ledger", processed.len(), evidence.inputs.len());
    Proof { name: "every file is put away", numbers, wrong }
}
