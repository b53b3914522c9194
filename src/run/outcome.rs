//! How a run ended, and what people are told about it.

use crate::agent::budget::Limit;
use crate::diagnostic::{Diagnostic, Report};
use crate::event::finding::Finding;
use crate::event::state::RunState;
use crate::workflow::view::Artifact;

/// The end of a run's work, before it is published or put aside.
#[derive(Debug)]
pub enum Outcome {
    /// The artifacts passed their checks.
    Passed(Vec<Artifact>),
    /// They did not, after all repairs.
    Rejected {
        /// What came out.
        artifacts: Vec<Artifact>,
        /// What is wrong with it.
        findings: Vec<Finding>,
    },
    /// A guardrail stopped it.
    Denied {
        /// Which.
        guard: String,
        /// Why.
        reason: String,
    },
    /// A limit stopped it.
    Exhausted {
        /// Which.
        limit: Limit,
        /// What had come out by then.
        artifacts: Vec<Artifact>,
    },
    /// An error stopped it.
    Failed(Diagnostic),
    /// A stop came from outside.
    Stopped,
}

impl Outcome {
    /// The state the run ends in. `Passed` still has to be published.
    pub fn state(&self) -> RunState {
        match self {
            Self::Passed(_) => RunState::Succeeded,
            Self::Rejected { .. } => RunState::Rejected,
            Self::Denied { .. } => RunState::Denied,
            Self::Exhausted { .. } => RunState::Exhausted,
            Self::Failed(_) => RunState::Failed,
            Self::Stopped => RunState::Cancelled,
        }
    }

    /// Why it ended, for every end but success.
    pub fn report(&self) -> Option<Report> {
        let diagnostic = match self {
            Self::Passed(_) => return None,
            Self::Failed(diagnostic) => return Some(diagnostic.report()),
            Self::Rejected { findings, .. } => {
                let first = findings.first().map(ToString::to_string).unwrap_or_default();
                let more = match findings.len() {
                    0 | 1 => String::new(),
                    count => format!(" (and {} more)", count - 1),
                };
                Diagnostic::new(
                    "run::rejected",
                    format!("the artifacts do not pass their checks: {first}{more}"),
                )
                .help("`tidemill show RUN` lists every finding and where the files were kept")
            }
            Self::Denied { guard, reason } => {
                Diagnostic::new("run::denied", format!("guardrail `{guard}` stopped the run: {reason}"))
                    .help("change the input or the workflow's guardrails")
            }
            Self::Exhausted { limit, .. } => Diagnostic::new("run::exhausted", limit.reason.clone())
                .help("raise the limit in the workflow, or ask for less in its prompt"),
            Self::Stopped => Diagnostic::new("run::cancelled", "it was stopped"),
        };
        Some(diagnostic.report())
    }
}
