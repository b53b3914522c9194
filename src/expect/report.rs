//! The findings on one artifact: all of them, but only so many of a kind.

use std::collections::BTreeMap;

use crate::event::finding::Finding;
use crate::workflow::view::Artifact;

/// Findings of one kind that are written out. More of the same tell the agent nothing new, and 100,000 bad rows must
/// not make a report that fits in no prompt.
pub(super) const WRITTEN_OUT: usize = 20;

/// Collects the findings on one artifact.
#[derive(Debug)]
pub(super) struct Report<'a> {
    path: &'a str,
    findings: Vec<Finding>,
    kinds: BTreeMap<&'static str, u64>,
}

impl<'a> Report<'a> {
    /// Nothing found yet.
    pub fn new(artifact: &'a Artifact) -> Self {
        Self { path: artifact.path.as_str(), findings: Vec::new(), kinds: BTreeMap::new() }
    }

    /// Adds a finding of `check`; `finding` fills in the rest and is called only when it is written out.
    pub fn add(
        &mut self,
        check: &'static str,
        message: impl Into<String>,
        finding: impl FnOnce(Finding) -> Finding,
    ) {
        let count = self.kinds.entry(check).or_default();
        *count += 1;
        if *count <= WRITTEN_OUT as u64 {
            self.findings.push(finding(Finding::new(check, message).path(self.path)));
        }
    }

    /// Everything found, with a line for each kind that is not written out in full.
    pub fn finish(mut self) -> Vec<Finding> {
        for (check, count) in self.kinds {
            let more = count.saturating_sub(WRITTEN_OUT as u64);
            if more > 0 {
                self.findings.push(Finding::new(check, format!("and {more} more like this")).path(self.path));
            }
        }
        self.findings
    }
}

/// Words for a list of names: `a`, `b` and `c`.
pub(super) fn listed<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let names: Vec<_> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [] => "none".to_owned(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}
