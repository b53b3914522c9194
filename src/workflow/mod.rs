//! What a script declares, as plain types: no Lua, no files read, nothing running.

pub mod agent;
pub mod environment;
pub mod expectation;
pub mod guardrail;
pub mod image;
pub mod limits;
pub mod manifest;
pub mod mode;
pub mod network;
pub mod notify;
pub mod package;
pub mod path;
pub mod queueing;
pub mod reference;
pub mod sandbox;
pub mod schedule;
pub mod trigger;
pub mod units;
pub mod view;
pub mod webhook;

use std::collections::BTreeMap;

use crate::event::id::Digest;
use crate::workflow::agent::{Agent, Prompt, Repair};
use crate::workflow::expectation::Output;
use crate::workflow::guardrail::Guardrail;
use crate::workflow::image::Image;
use crate::workflow::limits::Limits;
use crate::workflow::manifest::Manifest;
use crate::workflow::network::Network;
use crate::workflow::notify::Notify;
use crate::workflow::queueing::Queueing;
use crate::workflow::schedule::Schedule;
use crate::workflow::trigger::Drop;
use crate::workflow::webhook::Webhook;

/// What one Lua script declares.
#[derive(Debug, Clone, PartialEq)]
pub struct Workflow {
    /// Its name: `[a-z0-9][a-z0-9_-]*`, unique in the project, used in paths and on the command line.
    pub name: String,
    /// One line for lists; may be empty.
    pub description: String,
    /// Root-relative path of the script, e.g. `workflows/energy.lua`.
    pub file: String,
    /// Hash of the script and every file it required or read at load: a run is pinned to it.
    pub digest: Digest,
    /// What starts it besides `tidemill run`.
    pub triggers: Vec<Drop>,
    /// At which instants it is started, in the order of the script.
    pub schedules: Vec<Schedule>,
    /// How its runs stand in the queue.
    pub queueing: Queueing,
    /// Requests that start it.
    pub webhooks: Vec<Webhook>,
    /// The kind of sandbox its commands run in.
    pub sandbox: sandbox::Kind,
    /// What a container is made from; other sandboxes have no use for it.
    pub image: Image,
    /// What its commands may reach.
    pub network: Network,
    /// What is placed in `/workspace` before the agent starts.
    pub manifest: Manifest,
    /// Environment variables of its commands.
    pub environment: BTreeMap<String, String>,
    /// Places of the host mounts it asks for; the project file says what is there.
    pub mounts: Vec<String>,
    /// Who does the work.
    pub agent: Agent,
    /// What the agent is asked.
    pub prompt: Prompt,
    /// What it may use.
    pub limits: Limits,
    /// What is checked before something happens, in order.
    pub guardrails: Vec<Guardrail>,
    /// What must come out, in path order.
    pub outputs: Vec<Output>,
    /// The check across files, when there is one.
    pub validate: Option<Hook>,
    /// What happens when a check fails.
    pub repair: Repair,
    /// Who is told what becomes of its runs.
    pub notify: Vec<Notify>,
}

impl Workflow {
    /// The image its commands run in, where they run in a container.
    pub fn container_image(&self) -> Option<&Image> {
        (self.sandbox == sandbox::Kind::Docker).then_some(&self.image)
    }
}

/// A Lua function of the script, by its place in the script's table of hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hook(pub usize);
