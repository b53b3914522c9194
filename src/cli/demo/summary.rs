//! The demo's last words: findings, files, receipt, and how they compare with what is known.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;

use crate::cli::demo::found::{self, Comparison, Found};
use crate::cli::demo::readings::ABNORMAL;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::input::printable;

/// The table among the artifacts.
const TABLE: &str = "anomalies.csv";

/// The receipt beside the artifacts.
const RECEIPT: &str = "receipt.json";

/// Longer words of a model would break the table.
const KIND_WIDTH: usize = 40;

/// The summary of a published run as text, without a line end at its end.
///
/// `folder` is the published folder relative to `root`, `artifacts` are paths in it, as the event `Published` has them.
pub fn summary(root: &Path, folder: &str, artifacts: &[String]) -> Result<String> {
    let published = Path::new(folder);
    // Whether they are written relative to the folder or to the project.
    let inside = |artifact: &str| {
        Path::new(artifact).strip_prefix(published).unwrap_or(Path::new(artifact)).to_owned()
    };
    let table = artifacts
        .iter()
        .find(|path| Path::new(path).file_name() == Some(OsStr::new(TABLE)))
        .ok_or_else(|| Diagnostic::new("demo::table", format!("the run published no {TABLE}")))?;
    let path = root.join(published).join(inside(table));
    let file = File::open(&path).map_err(|error| {
        Diagnostic::new("demo::table", format!("cannot read {}", path.display())).cause(error)
    })?;
    let found = found::read(file)?;
    let mut text = String::from("Findings\n");
    for (number, event) in found.iter().enumerate() {
        line(&mut text, number + 1, event);
    }
    compared(&mut text, &found::compare(&found, &ABNORMAL));
    text.push_str("\nArtifacts\n");
    for artifact in artifacts {
        let shown = printable(published.join(inside(artifact)).as_os_str());
        let _ = writeln!(text, "  {shown}");
    }
    let receipt = published.join(RECEIPT);
    let _ = write!(text, "\nReceipt\n  {}", printable(receipt.as_os_str()));
    Ok(text)
}

fn line(text: &mut String, number: usize, event: &Found) {
    let kind: String = printable(OsStr::new(&event.kind)).chars().take(KIND_WIDTH).collect();
    let difference = event.difference.map(|kwh| format!("{kwh:+.0} kWh")).unwrap_or_default();
    let row = format!(
        "  {number:>2}. {} to {}  {:>3} h  {difference:>10}  {kind}",
        event.first.strftime("%Y-%m-%d %H:%M"),
        event.last.strftime("%Y-%m-%d %H:%M"),
        event.hours,
    );
    let _ = writeln!(text, "{}", row.trim_end());
}

fn compared(text: &mut String, comparison: &Comparison<'_>) {
    let found = comparison.known.iter().filter(|(_, found)| *found).count();
    let _ = writeln!(
        text,
        "\nCompared with the {} events put into the readings: {found} found, {} missed, {} others reported",
        comparison.known.len(),
        comparison.known.len() - found,
        comparison.others.len(),
    );
    for (event, found) in &comparison.known {
        let word = if *found { "found" } else { "missed" };
        let _ =
            writeln!(text, "  {word:<6}  {}  {:>3} h  {}", event.first(), event.hours, event.kind.describe());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE_TEXT: &str = "timestamp,energy_kwh,difference_kwh,kind\n\
        2025-03-19 14:00:00,240,150,sudden\u{1b}[31m spike\n\
        2025-03-19 15:00:00,190,95,sudden\u{1b}[31m spike\n\
        2025-09-01 03:00:00,60,30,other\n";

    fn summarize(artifacts: &[&str]) -> Result<String> {
        let root = tempfile::tempdir().unwrap();
        let output = root.path().join("outbox/energy-anomalies/x-run/output");
        std::fs::create_dir_all(&output).unwrap();
        std::fs::write(output.join(TABLE), TABLE_TEXT).unwrap();
        let artifacts: Vec<String> = artifacts.iter().map(|&path| path.to_owned()).collect();
        summary(root.path(), "outbox/energy-anomalies/x-run", &artifacts)
    }

    #[test]
    fn the_summary_says_what_was_found_and_where_it_is() {
        let text = summarize(&["output/anomalies.csv", "output/energy_anomalies.png"]).unwrap();
        let expected = "\
Findings
   1. 2025-03-19 14:00 to 2025-03-19 15:00    2 h    +245 kWh  sudden\\u{1b}[31m spike
   2. 2025-09-01 03:00 to 2025-09-01 03:00    1 h     +30 kWh  other

Compared with the 6 events put into the readings: 1 found, 5 missed, 1 others reported
  missed  2025-02-11 20:00:00   10 h  heating left on overnight
  found   2025-03-19 14:00:00    2 h  a sudden spike
  missed  2025-05-17 07:00:00   36 h  a weekend that ran like working days
  missed  2025-06-24 09:00:00    7 h  a meter outage
  missed  2025-08-04 00:00:00  168 h  a week of rising cooling load
  missed  2025-12-25 06:00:00   16 h  an extreme load on a holiday

Artifacts
  outbox/energy-anomalies/x-run/output/anomalies.csv
  outbox/energy-anomalies/x-run/output/energy_anomalies.png

Receipt
  outbox/energy-anomalies/x-run/receipt.json";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_run_without_the_table_is_a_clear_error() {
        assert_eq!(summarize(&["output/other.md"]).unwrap_err().code(), "demo::table");
    }
}
