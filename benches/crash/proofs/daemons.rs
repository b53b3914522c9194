//! Daemons live until they are ended, whatever the one before them was at.

use std::collections::BTreeMap;
use std::fs;

use jiff::Timestamp;
use tidemill::event::state::RunState;
use tidemill::event::{Event, What};

use crate::evidence::Evidence;
use crate::proofs::{Proof, Wrong};

/// None ends by itself or panics. The numbers say what runs were at when one was ended.
pub fn hold(evidence: &Evidence<'_>) -> Proof {
    let mut wrong: Vec<Wrong> = evidence.fallen.iter().cloned().map(Wrong::new).collect();
    let talk = fs::read_to_string(evidence.project.talk()).unwrap_or_default();
    let panics = talk.lines().filter(|line| line.contains("panicked at"));
    wrong.extend(panics.map(|line| Wrong::new(line.to_owned())));
    let mut hit = BTreeMap::<String, usize>::new();
    for end in evidence.ends {
        let states = evidence.runs.iter().filter_map(|(_, events)| state_at(events, *end));
        for state in states.filter(|state| !state.is_end()) {
            *hit.entry(format!("{state:?}").to_lowercase()).or_default() += 1;
        }
    }
    let hit: Vec<String> = hit.into_iter().map(|(state, count)| format!("{count} {state}")).collect();
    let numbers = format!("{} daemons, ended while runs were {}", evidence.ends.len(), hit.join(", "));
    Proof { name: "every daemon lives until it is ended", numbers, wrong }
}

/// Where a run stood; nothing before it was queued.
fn state_at(events: &[Event], at: Timestamp) -> Option<RunState> {
    events.iter().take_while(|event| event.at < at).filter_map(|event| state(&event.what)).last()
}

fn state(what: &What) -> Option<RunState> {
    match what {
        What::RunQueued { .. } => Some(RunState::Queued),
        What::StateEntered { state, .. } | What::RunEnded { state, .. } => Some(*state),
        _ => None,
    }
}
