//! No answer of a model is paid for twice.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use tidemill::event::{Event, What};

use crate::evidence::Evidence;
use crate::models::{Ask, mark};
use crate::proofs::{Proof, Wrong};

/// A conversation is not asked about again once its answer is recorded, nor twice by one daemon.
///
/// What a daemon had not recorded when it was killed has to be asked again: an answer that was on its way, and one whose
/// last byte had been sent and was not read, or read and not yet committed. These are counted.
pub fn once(evidence: &Evidence<'_>) -> Proof {
    let recorded = recorded(evidence.runs.iter().flat_map(|(_, events)| events));
    let mut asked = BTreeMap::<&str, Vec<&Ask>>::new();
    for ask in &evidence.asks {
        asked.entry(&ask.conversation).or_default().push(ask);
    }
    let (mut wrong, mut cut, mut lost) = (Vec::new(), 0, 0);
    for asks in asked.values() {
        let answers = recorded.get(mark(&asks[0].conversation).as_str()).map_or(&[][..], Vec::as_slice);
        if answers.len() > 1 {
            wrong.push(Wrong::of(&asks[0].run, format!("one answer is recorded {} times", answers.len())));
        }
        for pair in asks.windows(2) {
            let (before, again) = (pair[0], pair[1]);
            if before.life == again.life {
                wrong.push(Wrong::of(&again.run, format!("{} asked the same twice", again.life)));
            } else if answers.first().is_some_and(|at| *at < again.at) {
                let what =
                    format!("asked again at {} by {}, after the answer was recorded", again.at, again.life);
                wrong.push(Wrong::of(&again.run, what));
            } else if before.was_sent() {
                lost += 1;
            } else {
                cut += 1;
            }
        }
    }
    let numbers = format!(
        "{} requests, {} conversations; asked again: {cut} cut on their way, {lost} lost in the last bytes",
        evidence.asks.len(),
        asked.len()
    );
    Proof { name: "no answer is paid for twice", numbers, wrong }
}

/// When each answer was recorded, by its mark.
fn recorded<'a>(events: impl Iterator<Item = &'a Event>) -> HashMap<String, Vec<Timestamp>> {
    let mut recorded = HashMap::<String, Vec<Timestamp>>::new();
    for event in events {
        let What::ModelResponded { text, calls, .. } = &event.what else { continue };
        let mark = match calls.first() {
            Some(call) => call.id.rsplit_once('-').map(|(mark, _)| mark.to_owned()),
            None => text.preview().rsplit_once(' ').map(|(_, mark)| mark.to_owned()),
        };
        recorded.entry(mark.unwrap_or_default()).or_default().push(event.at);
    }
    recorded
}

/// The servers had nothing to complain about: every call in a conversation is answered once, in order.
pub fn well_formed(evidence: &Evidence<'_>) -> Proof {
    let wrong = evidence.complaints.iter().map(|complaint| Wrong::new(complaint.clone())).collect();
    let numbers = format!("{} requests", evidence.asks.len());
    Proof { name: "every request is well formed", numbers, wrong }
}
