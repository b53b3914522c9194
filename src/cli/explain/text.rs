//! An explanation for people.

use std::fmt::Write as _;
use std::path::Path;

use crate::cli::explain::{Explanation, Matched, Now, Past};
use crate::config::Project;
use crate::event::input::{Fingerprint, RawPath, printable};
use crate::event::state::InputState;
use crate::trigger::drop_folder::names::ignored_file;
use crate::workflow::units::show_duration;

/// More old files of one name than these are only counted.
const SHOWN: usize = 5;

pub(super) fn outside(project: &Project, path: &Path) -> String {
    format!(
        "{} is outside the inbox: nothing happens to it.\nFiles are dropped into {}",
        printable(path.as_os_str()),
        printable(project.inbox().as_os_str())
    )
}

/// Lists name files by their paths in the inbox; a shell's user gives them from the folder they are in.
pub(super) fn below(project: &Project, path: &Path) -> String {
    format!(
        "If a path in it was meant: tidemill explain {}",
        printable(project.inbox().join(path).as_os_str())
    )
}

pub(super) fn tell(explanation: &Explanation, project: &Project) -> String {
    let mut text = format!("{}\n", explanation.path.display());
    now(&mut text, explanation, project);
    workflows(&mut text, explanation);
    afterwards(&mut text, explanation, project);
    history(&mut text, &explanation.history);
    text.truncate(text.trim_end().len());
    text
}

fn now(text: &mut String, explanation: &Explanation, project: &Project) {
    let _ = match &explanation.now {
        _ if !explanation.inbox_present => writeln!(
            text,
            "  now: the inbox {} is not there; nothing counts as deleted, and it is looked for until it is back",
            printable(project.inbox().as_os_str())
        ),
        Now::Nothing => match ignored_file(explanation.path.name()) {
            Some(rule) => writeln!(
                text,
                "  now: nothing stands there; a file of this name is ignored: {} (rule `{}`)",
                rule.what, rule.name
            ),
            None => writeln!(text, "  now: nothing stands there"),
        },
        Now::Left { path, reason, .. } if *path != explanation.path => {
            writeln!(text, "  now: left alone, because {} is {reason}", path.display())
        }
        Now::Left { state, reason, .. } => writeln!(text, "  now: {state}: {reason}"),
        Now::Waits(version) => {
            let last = explanation.history.last();
            writeln!(text, "  now: {}", waiting(last, *version, explanation.watched, project))
        }
    };
    if !explanation.watched {
        let _ = writeln!(text, "  nobody watches this project now; `tidemill watch` does");
    }
}

/// A file that is to be taken, and is not yet.
fn waiting(last: Option<&Past>, version: Fingerprint, watched: bool, project: &Project) -> String {
    let quiet = show_duration(project.config.watch.settle);
    if let Some(Past { row, .. }) = last
        && row.kept
        && row.fingerprint == version
    {
        return format!(
            "{}: it was taken as it is, and stays here; it runs again when it has changed",
            row.state
        );
    }
    match last.map(|past| (&past.row.state, past.row.reason.as_deref())) {
        Some((InputState::Seen | InputState::Settling, Some(reason))) if watched => {
            format!("still settling: {reason}")
        }
        Some((InputState::Blocked, Some(reason))) => format!("blocked: {reason}; it is tried again"),
        Some((state @ (InputState::Incomplete | InputState::RootAbsent), Some(reason))) => {
            format!("{state}: {reason}")
        }
        // By its name it would be taken; that it stood there before, only the ledger knows.
        Some((state @ InputState::Ignored, Some(reason))) if reason.ends_with("(rule `existing`)") => {
            format!("{state}: {reason}")
        }
        _ => format!("it waits; it counts as complete when it has not changed for {quiet}"),
    }
}

fn workflows(text: &mut String, explanation: &Explanation) {
    for drop in &explanation.matches {
        let _ = writeln!(text, "  starts {}: `{}` matches", drop.workflow, drop.glob);
        if !drop.options.is_empty() {
            let _ = writeln!(text, "    with {}", drop.options.join(", "));
        }
    }
    for (workflow, glob) in &explanation.misses {
        let _ = writeln!(text, "  not {workflow}: `{glob}` does not match");
    }
    if explanation.matches.is_empty() && explanation.misses.is_empty() {
        let _ = writeln!(text, "  no workflow has a drop trigger");
    }
    if explanation.broken_scripts > 0 {
        let _ = writeln!(
            text,
            "  {} mistakes in scripts hide what they match; `tidemill check` shows them",
            explanation.broken_scripts
        );
    }
}

fn afterwards(text: &mut String, explanation: &Explanation, project: &Project) {
    if explanation.matches.is_empty() || matches!(explanation.now, Now::Left { .. }) {
        return;
    }
    let folders = &project.config.folders;
    let path = explanation.path.display();
    let usual = |said: fn(&Matched) -> bool| explanation.matches.iter().all(said);
    if usual(|drop| drop.on_success.is_none()) {
        let _ =
            writeln!(text, "  afterwards: {}/{path} when every run succeeds", folders.processed.display());
    }
    if usual(|drop| drop.on_failure.is_none()) {
        let _ = writeln!(text, "  else: {}/{path} with the reason beside it", folders.failed.display());
    }
}

fn history(text: &mut String, history: &[Past]) {
    if history.is_empty() {
        let _ = writeln!(text, "  the ledger knows no file of this name");
    }
    if history.len() > SHOWN {
        let _ = writeln!(text, "  {} earlier files of this name are not shown", history.len() - SHOWN);
    }
    for past in history.iter().skip(history.len().saturating_sub(SHOWN)) {
        let row = &past.row;
        let _ = writeln!(text, "  input {}, {} bytes: {}", row.id, row.fingerprint.size, row.state);
        for change in &past.changes {
            let reason = change.reason.as_deref().map_or_else(String::new, |reason| format!(": {reason}"));
            let _ = writeln!(text, "    {} {}{reason}", change.at.strftime("%Y-%m-%d %H:%M:%SZ"), change.to);
        }
        for run in &past.runs {
            let _ = writeln!(text, "    run {} of {}: {}", run.id, run.workflow, run.state);
        }
        if let Some(path) = &row.final_path {
            let _ = writeln!(text, "    it stands in {}", RawPath::new(path).display());
        }
    }
}
