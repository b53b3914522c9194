//! Everything that happens to a run, as an ordered list of facts.
//!
//! The log is the truth: state, cost, trace and receipt are folds over it. An event is appended before the act it
//! speaks of is relied upon. Text above [`Payload::INLINE_LIMIT`] goes to the blob store by its hash.

pub mod again;
pub mod finding;
pub mod finish;
pub mod id;
pub mod input;
pub mod isolation;
pub mod network;
pub mod origin;
pub mod payload;
pub mod resumed;
pub mod said;
pub mod state;
pub mod trigger;
pub mod usage;
pub mod verdict;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::diagnostic::Report;
use crate::event::again::Again;
use crate::event::finding::Finding;
use crate::event::finish::Finish;
use crate::event::id::{Digest, RunId};
use crate::event::input::InputFile;
use crate::event::isolation::Isolation;
use crate::event::network::{Contact, Use};
use crate::event::origin::Origin;
use crate::event::payload::Payload;
use crate::event::resumed::How;
use crate::event::said::Occasion;
use crate::event::state::RunState;
use crate::event::trigger::{Params, Trigger};
use crate::event::usage::{Cost, Usage};
use crate::event::verdict::{Stage, Verdict};

/// One line of a run's log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The run it belongs to.
    pub run: RunId,
    /// Its place in the run's order, from 1 without gaps.
    pub seq: u64,
    /// When it was appended, by the wall clock.
    pub at: Timestamp,
    /// What happened.
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum What {
    /// The run exists: what started it, on what, pinned to which script.
    RunQueued {
        /// The workflow's name.
        workflow: String,
        /// What started it.
        trigger: Trigger,
        /// What it works on.
        inputs: Vec<InputFile>,
        /// What the trigger knows besides.
        #[serde(default, skip_serializing_if = "Params::is_empty")]
        params: Params,
        /// Hash of the script and everything it required.
        script: Digest,
        /// Name of the model, as the workflow or the command line says it.
        model: String,
        /// The run it does over.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_of: Option<RunId>,
    },
    /// The run entered a state.
    StateEntered {
        /// Which.
        state: RunState,
        /// Why, where it is not the ordinary next step.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// It failed by something that passes and waits in the queue until it is tried again.
    Postponed {
        /// When and why.
        again: Again,
    },
    /// The image stands ready on the engine.
    ImageReady {
        /// The tag or folder as declared.
        reference: String,
        /// The engine's content digest of it (`sha256:...`), to which the run is pinned.
        digest: String,
        /// What the base was replaced with, when it could not be pulled.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        substituted_base: Option<String>,
    },
    /// The sandbox runs, and this is how isolated it is, as read back from the engine.
    SandboxStarted {
        /// The engine's id of the container.
        container: String,
        /// What was read back.
        isolation: Isolation,
    },
    /// The sandbox tried to reach something of this kind for the first time.
    NetworkDecided {
        /// What, and what came of it.
        contact: Contact,
    },
    /// The sandbox's network is gone; this is all that was reached and refused, `NetworkDecided` included.
    NetworkEnded {
        /// By kind.
        used: Vec<Use>,
    },
    /// What a list would have to hold for all that was reached: the run's network was there to find out.
    NetworkLearned {
        /// As `network.allow` takes them.
        allow: Vec<String>,
    },
    /// The manifest stands in the workspace.
    WorkspaceFilled {
        /// Files placed.
        files: u64,
        /// Their bytes.
        bytes: u64,
        /// Where each entry is from, the first [`What::ENTRIES`] of them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        entries: Vec<Origin>,
    },
    /// The prompt, after its guardrails.
    PromptReady {
        /// Its text.
        prompt: Payload,
        /// Hash of the text.
        digest: Digest,
    },
    /// A guardrail spoke. Passes are recorded as well.
    GuardrailChecked {
        /// Before what it was asked.
        stage: Stage,
        /// Its name.
        guard: String,
        /// What it said.
        verdict: Verdict,
    },
    /// A request goes to the model; its budget is reserved.
    ModelRequested {
        /// Turn, from 1.
        turn: u32,
        /// Items in the conversation.
        items: u64,
        /// The most this call may cost, in dollars, set aside before it is made.
        reserved_usd: Option<Cost>,
        /// The most tokens this call may use, set aside before it is made.
        reserved_tokens: u64,
    },
    /// A call to the model failed and is tried again.
    ModelRetried {
        /// Turn, from 1.
        turn: u32,
        /// What went wrong.
        reason: String,
        /// Milliseconds waited before the next try.
        wait_ms: u64,
    },
    /// The model answered.
    ModelResponded {
        /// Turn, from 1.
        turn: u32,
        /// What it said to people; may be empty.
        text: Payload,
        /// The tool calls it asks for, in order.
        calls: Vec<ToolCall>,
        /// All of it word for word, as it goes back to the model: JSON of the conversation's items. Empty in logs of
        /// earlier versions.
        #[serde(default)]
        items: Payload,
        /// Why it stopped.
        #[serde(default)]
        finish: Finish,
        /// Tokens used, as the server counted them, or our estimate where it does not count.
        usage: Usage,
        /// What that costs, when the price is known.
        cost: Option<Cost>,
        /// Milliseconds from request to the last byte.
        millis: u64,
        /// The model's name as the server says it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// A call ended before its answer was whole. What it may have cost is booked all the same.
    ModelCut {
        /// Turn, from 1.
        turn: u32,
        /// Our estimate.
        usage: Usage,
        /// What that costs, when the price is known.
        cost: Option<Cost>,
    },
    /// The host says something to the model.
    Said {
        /// Why.
        occasion: Occasion,
        /// What.
        text: Payload,
    },
    /// A tool call begins.
    ToolStarted {
        /// Turn, from 1.
        turn: u32,
        /// The call.
        call: ToolCall,
        /// The id its command has in the sandbox, by which another host can follow it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        process: Option<u32>,
    },
    /// A tool call ended, by whatever way; the model is told `output`.
    ToolEnded {
        /// Turn, from 1.
        turn: u32,
        /// The call's id.
        id: String,
        /// What the model is told.
        output: Payload,
        /// The whole output, when `output` is cut.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        whole: Option<Payload>,
        /// Whether it did what was asked.
        outcome: ToolOutcome,
        /// Milliseconds it took.
        millis: u64,
    },
    /// The workspace as it is after a turn was kept: a new sandbox can be filled with it.
    Checkpointed {
        /// Turn, from 1.
        turn: u32,
        /// The list of all its files: a blob.
        tree: Digest,
        /// Files that had changed since the last time.
        files: u64,
        /// Their bytes.
        bytes: u64,
    },
    /// The run was interrupted, and goes on.
    Resumed {
        /// Where it stood.
        from: RunState,
        /// How it goes on.
        how: How,
    },
    /// A limit was reached.
    LimitReached {
        /// `turns`, `cost_usd`, `tokens` or `wall`.
        limit: String,
        /// A sentence with the numbers.
        reason: String,
    },
    /// A declared output was taken out of the sandbox.
    ArtifactCollected {
        /// Path in the workspace.
        path: String,
        /// Bytes.
        size: u64,
        /// Hash of its content.
        digest: Digest,
    },
    /// The artifacts were checked.
    ChecksEnded {
        /// 0 for the first answer, then one more for each repair.
        attempt: u32,
        /// Everything found wrong; empty means they passed.
        findings: Vec<Finding>,
    },
    /// The artifacts and their receipt stand in the outbox.
    Published {
        /// Root-relative folder in the outbox.
        folder: String,
        /// Paths in that folder.
        artifacts: Vec<String>,
    },
    /// Files of a run that publishes nothing were kept.
    KeptAside {
        /// Root-relative folder under `.tidemill/`.
        folder: String,
    },
    /// Something a person should know that changes nothing.
    Warned {
        /// What.
        report: Report,
    },
    /// The run is over. Its last event.
    RunEnded {
        /// The end state.
        state: RunState,
        /// Why, for every end but success.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        report: Option<Report>,
        /// All tokens of the run.
        usage: Usage,
        /// All it cost, when every price was known.
        cost: Option<Cost>,
    },
}

impl What {
    /// Entries of a manifest that an event speaks of: a log must stay quick to read.
    pub const ENTRIES: usize = 100;
}

/// One request by the model to use a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The call's id; made by us where the server gives none.
    pub id: String,
    /// The tool's name as the model wrote it; may not exist.
    pub tool: String,
    /// The arguments as the model wrote them; may not be JSON.
    pub arguments: String,
}

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolOutcome {
    /// It ran; for a command this includes exit codes other than 0.
    Done,
    /// It could not run: unknown tool, broken arguments, a missing file.
    Failed,
    /// A guardrail stopped it.
    Denied,
    /// It ran, and a guardrail kept its output from the model.
    Withheld,
    /// It ran out of time and was killed.
    TimedOut,
    /// The run was stopped while it ran.
    Stopped,
    /// Its host and its sandbox ended while it ran.
    Interrupted,
    /// It was never begun: a limit or a stop came first.
    NotCarriedOut,
}
