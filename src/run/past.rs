//! What an interrupted run had come to, told from its log: everything but the conversation, which `agent` recalls.

use std::time::Duration;

use jiff::Timestamp;

use crate::event::finding::Finding;
use crate::event::id::Digest;
use crate::event::origin::Origin;
use crate::event::said::Occasion;
use crate::event::state::RunState;
use crate::event::{Event, ToolCall, ToolOutcome, What};
use crate::sandbox::ReadyImage;

/// The past of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Past {
    /// The last state it was in besides waiting.
    pub from: RunState,
    /// Its prompt, when that was ready.
    pub is_prompted: bool,
    /// The image it is pinned to.
    pub image: Option<ReadyImage>,
    /// Its last sandbox, once that was filled.
    pub sandbox: Option<String>,
    /// What it was filled with.
    pub origins: Vec<Origin>,
    /// The turn after which its workspace was kept last, and the list of its files.
    pub checkpoint: Option<(u32, Digest)>,
    /// Calls that may have changed the workspace since.
    pub since: Vec<ToolCall>,
    /// Whether the agent has still to be told that its workspace is older than its work.
    pub is_loss_untold: bool,
    /// Which answer it works on: 0 for the first, then one more for each repair.
    pub attempt: u32,
    /// Where it stands.
    pub step: Step,
    /// Files that were taken out last: path, bytes, hash.
    pub collected: Vec<(String, u64, Digest)>,
    /// How much of its time it has used.
    pub worked: Duration,
    /// When the stretch of work began that is being told, and its last event.
    stretch: Option<(Timestamp, Timestamp)>,
    calls: Vec<ToolCall>,
    started: Option<String>,
}

/// Where a run stands in the loop of working and checking.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// The agent works.
    Work,
    /// The agent is done, and its files are to be checked.
    Check,
    /// They were checked; this is what was found.
    Checked(Vec<Finding>),
}

impl Past {
    /// Folds a run's events, in order.
    pub fn of(events: &[Event]) -> Self {
        let mut past = Self {
            from: RunState::Queued,
            is_prompted: false,
            image: None,
            sandbox: None,
            origins: Vec::new(),
            checkpoint: None,
            since: Vec::new(),
            is_loss_untold: false,
            attempt: 0,
            step: Step::Work,
            collected: Vec::new(),
            worked: Duration::ZERO,
            stretch: None,
            calls: Vec::new(),
            started: None,
        };
        for event in events {
            past.take(event);
        }
        past.rest();
        past
    }

    fn take(&mut self, event: &Event) {
        match &event.what {
            What::StateEntered { state: RunState::Queued | RunState::Preparing, .. } => self.rest(),
            What::SandboxStarted { .. } | What::Resumed { .. } if self.stretch.is_none() => {
                self.stretch = Some((event.at, event.at));
            }
            _ => {
                if let Some((_, last)) = &mut self.stretch {
                    *last = event.at;
                }
            }
        }
        match &event.what {
            What::StateEntered { state, .. } => self.enter(*state),
            What::PromptReady { .. } => {
                // Runs of earlier versions started over: what was done before counts no more.
                *self = Self { worked: self.worked, image: self.image.take(), ..Self::of(&[]) };
                self.is_prompted = true;
            }
            What::ImageReady { reference, digest, substituted_base } => {
                let substituted_base = substituted_base.clone();
                let (reference, digest) = (reference.clone(), digest.clone());
                self.image = Some(ReadyImage { reference, digest, substituted_base, fresh: false });
            }
            What::SandboxStarted { container, .. } => {
                (self.started, self.sandbox) = (Some(container.clone()), None);
                self.is_loss_untold |= !self.since.is_empty();
            }
            What::WorkspaceFilled { entries, .. } => {
                self.sandbox = self.started.take();
                self.origins.clone_from(entries);
            }
            What::ModelResponded { calls, .. } => self.calls.clone_from(calls),
            What::ToolEnded { id, outcome, .. } => self.end(id, *outcome),
            What::Checkpointed { turn, tree, .. } => {
                self.checkpoint = Some((*turn, tree.clone()));
                self.since.clear();
            }
            What::Said { occasion: Occasion::Loss, .. } => {
                self.since.clear();
                self.is_loss_untold = false;
            }
            What::Said { occasion: Occasion::Findings, .. } => {
                self.attempt += 1;
                self.step = Step::Work;
            }
            What::ArtifactCollected { path, size, digest } => {
                self.collected.push((path.clone(), *size, digest.clone()));
            }
            What::ChecksEnded { findings, .. } => self.step = Step::Checked(findings.clone()),
            _ => {}
        }
    }

    fn enter(&mut self, state: RunState) {
        if !matches!(state, RunState::Queued | RunState::Preparing) {
            self.from = state;
        }
        match state {
            RunState::Running => self.step = Step::Work,
            RunState::Checking => {
                self.step = Step::Check;
                self.collected.clear();
            }
            _ => {}
        }
    }

    fn end(&mut self, id: &str, outcome: ToolOutcome) {
        let acted = matches!(
            outcome,
            ToolOutcome::Done | ToolOutcome::Withheld | ToolOutcome::TimedOut | ToolOutcome::Stopped
        );
        if let (true, Some(call)) = (acted, self.calls.iter().find(|call| call.id == id)) {
            self.since.push(call.clone());
        }
    }

    /// The stretch of work is over: what comes next is waiting.
    fn rest(&mut self) {
        if let Some((first, last)) = self.stretch.take() {
            self.worked += Duration::try_from(last.duration_since(first)).unwrap_or_default();
        }
    }
}
