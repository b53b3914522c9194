//! Every input, and every instant of the schedule, has come out once and whole.

use std::collections::{BTreeMap, BTreeSet};

use tidemill::event::id::Digest;
use tidemill::event::state::RunState;

use crate::evidence::{Evidence, Folder};
use crate::kind::Kind;
use crate::proofs::{Proof, Wrong};

/// Each input by the hash in its receipt.
pub fn once(evidence: &Evidence<'_>) -> Proof {
    let mut wrong = Vec::new();
    let mut known = BTreeSet::new();
    let mut times = BTreeMap::<usize, usize>::new();
    for content in evidence.dropped {
        let digest = Digest::of(content);
        let of_it = evidence.outbox.iter().filter(|folder| input(folder) == Some(&digest)).count();
        *times.entry(of_it).or_default() += 1;
        if of_it != 1 {
            let run =
                evidence.runs.iter().find(|(row, _)| row.inputs.iter().any(|input| input.digest == digest));
            let what = format!("`{content}` was published {of_it} times");
            wrong.push(Wrong { what, run: run.map(|(row, _)| row.id.as_str().to_owned()) });
        }
        known.insert(digest.as_str().to_owned());
    }
    for folder in &evidence.outbox {
        let is_known = input(folder).is_none_or(|digest| known.contains(digest.as_str()));
        // What came in pieces may have been taken in pieces.
        if !is_known && evidence.spoilt.is_empty() {
            let what = format!("{} is of something that was never dropped whole", folder.path.display());
            wrong.push(Wrong { what, run: folder.run() });
        }
    }
    let times: Vec<String> = times.into_iter().map(|(times, inputs)| format!("{inputs} {times}x")).collect();
    let spoilt = match evidence.spoilt.len() {
        0 => String::new(),
        spoilt => format!("; {spoilt} dropped too slowly to say"),
    };
    let numbers = format!("{} inputs: {}{spoilt}", evidence.dropped.len(), times.join(", "));
    Proof { name: "every input is published once", numbers, wrong }
}

/// Each folder with its receipt and the exact artifacts.
pub fn whole(evidence: &Evidence<'_>) -> Proof {
    let mut wrong = Vec::new();
    for folder in &evidence.outbox {
        let wrongs = faults(folder, evidence);
        wrong.extend(
            wrongs
                .into_iter()
                .map(|what| Wrong { what: format!("{}: {what}", folder.path.display()), run: folder.run() }),
        );
    }
    let files: usize = evidence.outbox.iter().map(|folder| folder.files.len()).sum();
    let numbers = format!("{} folders, {files} artifacts", evidence.outbox.len());
    Proof { name: "what is published is whole and exact", numbers, wrong }
}

fn faults(folder: &Folder, evidence: &Evidence<'_>) -> Vec<String> {
    let (Some(kind), Some(receipt)) = (folder.kind, &folder.receipt) else {
        return vec!["it has no receipt".to_owned()];
    };
    let mut faults = Vec::new();
    if receipt.state != RunState::Succeeded {
        faults.push(format!("its receipt says {:?}", receipt.state));
    }
    let names: Vec<&str> = kind.artifacts().iter().map(|(name, _)| *name).collect();
    if folder.files.keys().ne(&names) {
        faults.push(format!("it holds {:?}", folder.files.keys()));
    }
    for (name, text) in &folder.files {
        let digest = Digest::of(text);
        if !receipt.artifacts.iter().any(|artifact| artifact.sha256 == digest) {
            faults.push(format!("{name} is not what the receipt says"));
        }
        let Some(content) = content(folder, evidence) else { continue };
        let mut lines: Vec<&str> = text.lines().collect();
        // A command that was interrupted may be repeated after the one behind it.
        lines.sort_unstable();
        if lines != kind.text(name, &content) {
            faults.push(format!("{name} holds {lines:?}"));
        }
    }
    faults
}

/// What the run worked on, in words.
fn content(folder: &Folder, evidence: &Evidence<'_>) -> Option<String> {
    if folder.kind == Some(Kind::Tick) {
        let said = folder.files.values().next()?;
        let instant = evidence.project.instants.iter().find(|instant| said.contains(&instant.to_string()));
        return Some(instant.map_or_else(|| "an instant".to_owned(), ToString::to_string));
    }
    let digest = input(folder)?;
    evidence.dropped.iter().find(|content| Digest::of(content) == *digest).cloned()
}

/// Each instant of the schedule.
pub fn instants(evidence: &Evidence<'_>) -> Proof {
    let ticks: Vec<&Folder> =
        evidence.outbox.iter().filter(|folder| folder.kind == Some(Kind::Tick)).collect();
    let mut wrong = Vec::new();
    for instant in &evidence.project.instants {
        let said = Kind::Tick.text("tick.txt", &instant.to_string());
        let of_it =
            ticks.iter().filter(|folder| folder.files.values().any(|text| text.lines().eq(&said))).count();
        if of_it != 1 {
            wrong.push(Wrong::new(format!("{instant} was published {of_it} times")));
        }
    }
    let numbers = format!("{} instants", evidence.project.instants.len());
    Proof { name: "every instant is published once", numbers, wrong }
}

fn input(folder: &Folder) -> Option<&Digest> {
    folder.receipt.as_ref()?.inputs.first().map(|input| &input.sha256)
}
