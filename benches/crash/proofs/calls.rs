//! No tool call is carried out twice.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use tidemill::event::What;

use crate::evidence::{Evidence, entries};
use crate::proofs::{Proof, Wrong};

/// By the log: a call that ended does not begin again.
pub fn once(evidence: &Evidence<'_>) -> Proof {
    let (mut wrong, mut calls, mut resumed) = (Vec::new(), 0, 0);
    for (row, events) in &evidence.runs {
        let (mut begun, mut ended) = (BTreeSet::new(), BTreeSet::new());
        for event in events {
            match &event.what {
                What::ToolStarted { call, .. } if ended.contains(&call.id) => {
                    wrong.push(Wrong::of(row.id.as_str(), format!("{} had ended, and began again", call.id)));
                }
                What::ToolStarted { call, .. } => resumed += usize::from(!begun.insert(call.id.clone())),
                What::ToolEnded { id, .. } if !ended.insert(id.clone()) => {
                    wrong.push(Wrong::of(row.id.as_str(), format!("{id} ended twice")));
                }
                _ => {}
            }
        }
        calls += begun.len();
    }
    let numbers = format!("{calls} calls, {resumed} begun again before their end was known");
    Proof { name: "no tool call that ended runs again", numbers, wrong }
}

/// By the commands themselves: each leaves a line outside of its container when it begins.
pub fn witnessed(evidence: &Evidence<'_>) -> Proof {
    let (mut wrong, mut commands) = (Vec::new(), 0);
    for file in entries(&evidence.project.witness()) {
        let run = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut seen = BTreeMap::<String, usize>::new();
        for line in fs::read_to_string(&file).unwrap_or_default().lines() {
            *seen.entry(line.to_owned()).or_default() += 1;
        }
        commands += seen.len();
        let twice = seen.into_iter().filter(|(_, times)| *times > 1);
        wrong.extend(twice.map(|(id, times)| Wrong::of(&run, format!("command {id} ran {times} times"))));
    }
    Proof { name: "no command runs twice", numbers: format!("{commands} commands in containers"), wrong }
}
