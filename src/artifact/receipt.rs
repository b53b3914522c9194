//! The receipt: how the artifacts came to be, folded from the run's events.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::diagnostic::{Diagnostic, Result};
use crate::event::finding::Finding;
use crate::event::id::{Digest, RunId};
use crate::event::input::InputFile;
use crate::event::isolation::Isolation;
use crate::event::network::Use;
use crate::event::origin::Origin;
use crate::event::state::RunState;
use crate::event::trigger::Trigger;
use crate::event::usage::{Cost, Usage};
use crate::event::verdict::{Stage, Verdict};
use crate::event::{Event, What};

/// How the artifacts of a run came to be. Written as `receipt.json` beside them; the order of its fields is fixed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// Version of this format.
    pub version: u32,
    /// Version of Tidemill that wrote it.
    pub tidemill: String,
    /// The run.
    pub run: RunId,
    /// The workflow's name.
    pub workflow: String,
    /// Where the run stands. A receipt that is in the outbox belongs to a run that succeeded.
    pub state: RunState,
    /// What started it.
    pub trigger: Trigger,
    /// What the run worked on.
    pub inputs: Vec<Content>,
    /// What it was pinned to.
    pub script: Script,
    /// The image its commands ran in, once it was ready.
    pub image: Option<Image>,
    /// How isolated it was, as read back from the engine.
    pub isolation: Option<Isolation>,
    /// What it was given, and where that is from.
    #[serde(default)]
    pub manifest: Vec<Origin>,
    /// All it reached and was refused, when it had a network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<Use>,
    /// The prompt, after its guardrails.
    pub prompt: Option<Prompt>,
    /// Who thought.
    pub model: Model,
    /// What came out; after a repair, the last of each.
    pub artifacts: Vec<Content>,
    /// All tokens.
    pub usage: Usage,
    /// All it cost in dollars, when every price was known.
    pub cost_usd: Option<Cost>,
    /// Answers of the model.
    pub turns: u32,
    /// How often the run was interrupted and went on.
    #[serde(default)]
    pub interruptions: u32,
    /// Every verdict, in order.
    pub guardrails: Vec<Guarded>,
    /// Every round of checks, in order.
    pub checks: Vec<Checked>,
    /// When it happened.
    pub times: Times,
}

/// A file by its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// Its path: an input's as found (`hex:...` when it is not UTF-8), an artifact's in the workspace.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// Hash.
    pub sha256: Digest,
}

/// The script a run was pinned to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script {
    /// Hash of the script and everything it required.
    pub sha256: Digest,
}

/// The image a run was pinned to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// As declared.
    pub reference: String,
    /// The engine's content digest.
    pub digest: String,
    /// What its base was replaced with, when that could not be pulled.
    pub substituted_base: Option<String>,
}

/// The prompt by its hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    /// Hash of its text.
    pub sha256: Digest,
}

/// The model of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    /// Its name, as the workflow or the command line says it.
    pub name: String,
    /// Its name as the server said it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<String>,
}

/// One verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guarded {
    /// Before what.
    pub stage: Stage,
    /// The guard's name.
    pub guard: String,
    /// `pass`, `deny`, `ask` or `replace`.
    pub verdict: String,
    /// Why, where it was no pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// One round of checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// 0 for the first answer, then one more for each repair.
    pub attempt: u32,
    /// Everything found wrong; empty means they passed.
    pub findings: Vec<Finding>,
}

/// When it happened, by the wall clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// Queued.
    pub queued: Timestamp,
    /// Left the queue.
    pub started: Option<Timestamp>,
    /// The last thing that happened before this receipt was written.
    pub ended: Timestamp,
    /// Milliseconds from leaving the queue (from being queued, when it never left) to the end.
    pub wall_ms: u64,
}

impl Receipt {
    /// Version of the format that this code writes.
    pub const VERSION: u32 = 1;
    /// Its name in the published folder.
    pub const FILE: &'static str = "receipt.json";

    /// Folds a run's events, in order, from the first. The same events always make the same receipt.
    ///
    /// While a run is publishing, its receipt already says `succeeded`: the receipt is renamed into the outbox
    /// together with the artifacts, so nobody sees it unless publishing succeeded.
    pub fn fold(events: &[Event]) -> Result<Self> {
        let Some((first, rest)) = events.split_first() else {
            return Err(no_start("it is empty"));
        };
        let What::RunQueued { workflow, trigger, inputs, script, model, .. } = &first.what else {
            return Err(no_start("its first event is another one"));
        };
        let mut receipt = Self {
            version: Self::VERSION,
            tidemill: env!("CARGO_PKG_VERSION").to_owned(),
            run: first.run.clone(),
            workflow: workflow.clone(),
            state: RunState::Queued,
            trigger: *trigger,
            inputs: inputs.iter().map(Content::of_input).collect(),
            script: Script { sha256: script.clone() },
            image: None,
            isolation: None,
            manifest: Vec::new(),
            network: Vec::new(),
            prompt: None,
            model: Model { name: model.clone(), reported: None },
            artifacts: Vec::new(),
            usage: Usage::default(),
            cost_usd: Some(Cost::ZERO),
            turns: 0,
            interruptions: 0,
            guardrails: Vec::new(),
            checks: Vec::new(),
            times: Times { queued: first.at, started: None, ended: first.at, wall_ms: 0 },
        };
        for event in rest {
            receipt.take(event);
        }
        let from = receipt.times.started.unwrap_or(receipt.times.queued);
        let wall = receipt.times.ended.duration_since(from).as_millis();
        receipt.times.wall_ms = u64::try_from(wall).unwrap_or_default();
        Ok(receipt)
    }

    /// The text of `receipt.json`.
    pub fn to_json(&self) -> Result<String> {
        let text = serde_json::to_string_pretty(self).map_err(|error| {
            Diagnostic::new("artifact::receipt", "the receipt cannot be written as JSON").cause(error)
        })?;
        Ok(text + "\n")
    }

    fn take(&mut self, event: &Event) {
        self.times.ended = event.at;
        match &event.what {
            What::StateEntered { state, .. } => {
                self.state = match state {
                    RunState::Publishing => RunState::Succeeded,
                    state => *state,
                };
                if *state != RunState::Queued {
                    self.times.started.get_or_insert(event.at);
                }
            }
            What::ImageReady { reference, digest, substituted_base } => {
                self.image = Some(Image {
                    reference: reference.clone(),
                    digest: digest.clone(),
                    substituted_base: substituted_base.clone(),
                });
            }
            What::SandboxStarted { isolation, .. } => self.isolation = Some(isolation.clone()),
            What::WorkspaceFilled { entries, .. } => self.manifest.clone_from(entries),
            What::NetworkEnded { used } => self.network.clone_from(used),
            What::PromptReady { digest, .. } => {
                self.prompt = Some(Prompt { sha256: digest.clone() });
            }
            What::GuardrailChecked { stage, guard, verdict } => {
                self.guardrails.push(Guarded::new(*stage, guard, verdict));
            }
            What::ModelResponded { usage, cost, model, .. } => {
                self.turns += 1;
                self.model.reported = model.clone().or_else(|| self.model.reported.take());
                self.usage += *usage;
                self.cost_usd = self.cost_usd.zip(*cost).map(|(all, one)| all + one);
            }
            What::ModelCut { usage, cost, .. } => {
                self.usage += *usage;
                self.cost_usd = self.cost_usd.zip(*cost).map(|(all, one)| all + one);
            }
            What::Resumed { .. } => self.interruptions += 1,
            What::ArtifactCollected { path, size, digest } => self.collect(path, *size, digest),
            What::ChecksEnded { attempt, findings } => {
                self.checks.push(Checked { attempt: *attempt, findings: findings.clone() });
            }
            What::RunEnded { state, usage, cost, .. } => {
                self.state = *state;
                self.usage = *usage;
                self.cost_usd = *cost;
            }
            _ => {}
        }
    }

    /// A repair collects an artifact again: the last one counts.
    fn collect(&mut self, path: &str, size: u64, digest: &Digest) {
        let content = Content { path: path.to_owned(), size, sha256: digest.clone() };
        match self.artifacts.binary_search_by(|known| known.path.as_str().cmp(path)) {
            Ok(at) => self.artifacts[at] = content,
            Err(at) => self.artifacts.insert(at, content),
        }
    }
}

impl Content {
    fn of_input(input: &InputFile) -> Self {
        Self { path: input.path.encode(), size: input.size, sha256: input.digest.clone() }
    }
}

impl Guarded {
    fn new(stage: Stage, guard: &str, verdict: &Verdict) -> Self {
        let (word, reason) = match verdict {
            Verdict::Pass => ("pass", None),
            Verdict::Deny { reason } => ("deny", Some(reason.clone())),
            Verdict::Ask { reason } => ("ask", Some(reason.clone())),
            Verdict::Replace { reason, .. } => ("replace", Some(reason.clone())),
        };
        Self { stage, guard: guard.to_owned(), verdict: word.to_owned(), reason }
    }
}

fn no_start(why: &str) -> Diagnostic {
    Diagnostic::new("artifact::no_start", format!("the run's log does not begin with its start: {why}"))
        .help("a receipt is made from the whole log of a run; check `tidemill logs RUN --json`")
}
