//! What a run came to, as a fold over its events.

use crate::event::finding::Finding;
use crate::event::verdict::{Stage, Verdict};
use crate::event::{Event, ToolOutcome, What};

/// The parts of a run a person asks for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outline {
    /// Findings of each check, in order of attempts.
    pub checks: Vec<(u32, Vec<Finding>)>,
    /// Every verdict that was not a pass.
    pub verdicts: Vec<(Stage, String, Verdict)>,
    /// Paths of published artifacts, root-relative.
    pub artifacts: Vec<String>,
    /// Where files were kept that were not published.
    pub kept: Option<String>,
    /// Image reference and digest.
    pub image: Option<(String, String)>,
    /// What a list of allowed hosts needs, when the run was there to find out.
    pub learned: Option<Vec<String>>,
    /// Tool calls made.
    pub tool_calls: usize,
    /// How often it was interrupted and went on.
    pub interruptions: usize,
}

impl Outline {
    /// Folds the events of one run.
    pub fn of<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut outline = Self::default();
        for event in events {
            match &event.what {
                What::ChecksEnded { attempt, findings } => outline.checks.push((*attempt, findings.clone())),
                What::GuardrailChecked { stage, guard, verdict } if *verdict != Verdict::Pass => {
                    outline.verdicts.push((*stage, guard.clone(), verdict.clone()));
                }
                What::Published { artifacts, .. } => outline.artifacts.clone_from(artifacts),
                What::KeptAside { folder } => outline.kept = Some(folder.clone()),
                What::ImageReady { reference, digest, .. } => {
                    outline.image = Some((reference.clone(), digest.clone()));
                }
                What::NetworkLearned { allow } => outline.learned = Some(allow.clone()),
                What::ToolEnded { outcome, .. } if *outcome != ToolOutcome::NotCarriedOut => {
                    outline.tool_calls += 1;
                }
                What::Resumed { .. } => outline.interruptions += 1,
                _ => {}
            }
        }
        outline
    }
}
