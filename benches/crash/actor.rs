//! The model: what it answers follows from the conversation alone, as little as a real one is told about crashes.
//!
//! It looks before it goes on whenever it is told something it did not expect, as a careful agent does. So a run that
//! is told the truth about its workspace comes to the right end, however often it is interrupted.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::kind::Kind;
use crate::talk::{Said, Talk};

/// What it says when it thinks it is done.
const DONE: &str = "done";
/// What stands before the file in the output of a command.
const MARK: &str = "LOG:";
/// How a mended run stops too early.
const TOO_EARLY: usize = 2;

/// An answer.
#[derive(Debug)]
pub enum Answer {
    /// It uses tools.
    Calls(Vec<(&'static str, Value)>),
    /// It has its last word.
    Says(String),
}

/// What it answers. A call of a command is told its own `id`.
pub fn answer(talk: &Talk, id: &dyn Fn(usize) -> String) -> Answer {
    match talk.kind {
        Kind::Steps | Kind::Mended | Kind::Local => commands(talk, id),
        Kind::Notes => notes(talk),
        Kind::Tick => tick(talk),
    }
}

fn commands(talk: &Talk, id: &dyn Fn(usize) -> String) -> Answer {
    let shell = |command: String| ("shell", json!({ "command": command }));
    let witness = |number: usize| match talk.kind {
        Kind::Local => String::new(),
        _ => format!("echo {} >> /witness/{} && ", id(number), talk.run),
    };
    let look = |number: usize| shell(format!("{}echo {MARK} && cat output/log.txt", witness(number)));
    let Some(known) = lines_known(talk) else { return Answer::Calls(vec![look(0)]) };
    let goal = match talk.kind {
        Kind::Mended if !talk.has_said(DONE) => TOO_EARLY,
        kind => kind.lines(),
    };
    let line = |place: usize, number: usize| {
        let (before, after) = rests(number);
        shell(format!(
            "{}mkdir -p output && sleep {before} && echo \"$(cat input/data.txt) {number}\" >> output/log.txt && \
             sleep {after} && echo {MARK} && cat output/log.txt",
            witness(place)
        ))
    };
    let mut missing = (1..=goal).filter(|number| !known.contains(number));
    // The first two at once: a crash may come between the calls of one turn.
    let wanted = if known.is_empty() { 2 } else { 1 };
    let next: Vec<_> =
        missing.by_ref().take(wanted).enumerate().map(|(place, number)| line(place, number)).collect();
    if next.is_empty() { Answer::Says(DONE.to_owned()) } else { Answer::Calls(next) }
}

/// How long a command sleeps before it appends its line and after: crashes come in each half.
fn rests(number: usize) -> (&'static str, &'static str) {
    match number {
        2 => ("0", "1"),
        3 => ("0.4", "0"),
        _ => ("0", "0"),
    }
}

/// The lines that are known to stand in the file; nothing when it has to be looked at first.
fn lines_known(talk: &Talk) -> Option<BTreeSet<usize>> {
    if talk.has_just_begun() {
        return Some(BTreeSet::new());
    }
    let Some(Said::Output(output)) = talk.said.last() else { return None };
    let (_, file) = output.split_once(MARK)?;
    Some(file.lines().filter_map(|line| line.rsplit_once(' ')?.1.parse().ok()).collect())
}

fn notes(talk: &Talk) -> Answer {
    let outputs = talk.since_spoken_to();
    let content = outputs.first().and_then(|read| read.lines().find(|line| line.starts_with("notes-")));
    match (outputs.len(), content) {
        (0, _) => Answer::Calls(vec![("read_file", json!({ "path": "input/data.txt" }))]),
        (1, Some(content)) => {
            let write = |name: &str| {
                let text = Kind::Notes.text(name, content).join("\n");
                ("write_file", json!({ "path": format!("output/{name}"), "content": text }))
            };
            Answer::Calls(vec![write("a.txt"), write("b.txt")])
        }
        (3, Some(_)) => Answer::Calls(vec![("read_file", json!({ "path": "output/a.txt" }))]),
        // It begins anew when its check sends it back.
        _ => Answer::Says(DONE.to_owned()),
    }
}

fn tick(talk: &Talk) -> Answer {
    if talk.since_spoken_to().is_empty() {
        let text = Kind::Tick.text("tick.txt", &talk.rest).join("\n");
        Answer::Calls(vec![("write_file", json!({ "path": "output/tick.txt", "content": text }))])
    } else {
        Answer::Says(DONE.to_owned())
    }
}
