//! Every run succeeded: none was given up for being interrupted.

use std::collections::BTreeMap;

use tidemill::event::What;
use tidemill::event::state::RunState;

use crate::evidence::Evidence;
use crate::proofs::{Proof, Wrong};

/// The end of every run, and that it has one.
pub fn succeeded(evidence: &Evidence<'_>) -> Proof {
    let mut wrong = Vec::new();
    let mut states = BTreeMap::<String, usize>::new();
    for (row, events) in &evidence.runs {
        *states.entry(format!("{:?}", row.state).to_lowercase()).or_default() += 1;
        let why = row.report.as_ref().map(|report| format!("{}: {}", report.code, report.message));
        if row.state != RunState::Succeeded {
            let what = format!("{} {:?} after {} attempts, {why:?}", row.workflow, row.state, row.attempts);
            wrong.push(Wrong::of(row.id.as_str(), what));
        }
        let ends = events.iter().filter(|event| matches!(event.what, What::RunEnded { .. })).count();
        if ends != 1 {
            wrong.push(Wrong::of(row.id.as_str(), format!("its log ends {ends} times")));
        }
    }
    let states: Vec<String> = states.into_iter().map(|(state, count)| format!("{count} {state}")).collect();
    Proof { name: "every run succeeds, none is given up", numbers: states.join(", "), wrong }
}
