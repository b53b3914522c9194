//! The reason beside a file that failed: what happened, to which run, and what to do.

use std::fmt::Write as _;
use std::path::Path;

use crate::diagnostic::Report;
use crate::event::finding::Finding;
use crate::event::input::RawPath;
use crate::store::RunRow;

/// What is added to the file's name.
pub(super) const SUFFIX: &str = ".reason.txt";

/// More findings than these are in the log.
const FINDINGS: usize = 20;

/// The text for the runs that did not succeed.
pub(super) fn text(path: &RawPath, inbox: &Path, stories: &[(RunRow, Vec<Finding>)]) -> String {
    let mut text = format!("{} was not processed.\n", path.display());
    for (run, findings) in stories {
        let _ = write!(text, "\n{} ended as {} (run {})\n", run.workflow, run.state, run.id);
        if let Some(report) = &run.report {
            tell(&mut text, report);
        }
        for finding in findings.iter().take(FINDINGS) {
            let _ = writeln!(text, "  - {finding}");
        }
        if findings.len() > FINDINGS {
            let _ = writeln!(text, "  - and {} more", findings.len() - FINDINGS);
        }
        let _ = writeln!(text, "  all of it: tidemill show {0}; tidemill logs {0}", run.id);
        let _ = writeln!(text, "  once more: tidemill retry {}", run.id);
    }
    let dropped = RawPath::new(inbox.join(path.as_path()));
    let _ = writeln!(text, "\nMoved back to {}, it counts as dropped anew.", dropped.display());
    text
}

/// The text for a file that makes no run because one like it did.
pub(super) fn duplicate(path: &RawPath, why: &str) -> String {
    format!(
        "{} was not processed: it is a duplicate.\n\n{why}\n\nTo process it all the same, take `dedupe` out of the drop.\n",
        path.display()
    )
}

fn tell(text: &mut String, report: &Report) {
    let _ = writeln!(text, "  {} [{}]", report.message, report.code);
    if let Some(place) = &report.place {
        let _ = writeln!(text, "  at {}:{}:{}", place.file, place.line, place.column);
    }
    for cause in &report.causes {
        let _ = writeln!(text, "  because: {cause}");
    }
    if let Some(help) = &report.help {
        let _ = writeln!(text, "  help: {help}");
    }
}
