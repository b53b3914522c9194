//! One run's story up to its last check: prepare, or find out how far an earlier process came, then work in a sandbox.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::agent::Journal as _;
use crate::agent::budget::Budget;
use crate::agent::conversation::Conversation;
use crate::agent::recall::{Recalled, texts};
use crate::agent::resume::Start;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::Digest;
use crate::event::payload::Payload;
use crate::event::resumed::How;
use crate::event::state::RunState;
use crate::event::{Event, What};
use crate::guard::{Outcome as Judged, Pipeline, Subject};
use crate::model::Model;
use crate::run::conductor::Conductor;
use crate::run::folder::RunFolder;
use crate::run::journal::Journal;
use crate::run::outcome::Outcome;
use crate::run::past::{Past, Step};
use crate::run::route::pinned;
use crate::run::taken::taken_before;
use crate::run::{guarded, inputs, models};
use crate::script::{self, Loaded};
use crate::store::RunRow;
use crate::workflow::agent::Prompt;
use crate::workflow::view::{Artifact, RunView};

/// What one run is made of, once its script is loaded.
pub(super) struct Work<'a> {
    pub(super) loaded: &'a Loaded,
    pub(super) model: Box<dyn Model>,
    pub(super) guards: Pipeline,
    pub(super) view: Arc<RunView>,
    pub(super) folder: &'a RunFolder,
    pub(super) journal: &'a Journal,
    pub(super) budget: Budget,
    pub(super) conversation: Conversation,
    /// From where the agent goes on.
    pub(super) start: Start,
    /// What an earlier process did.
    pub(super) past: Past,
}

impl Conductor {
    /// Everything up to the last check.
    pub(super) async fn story(
        &self,
        run: &RunRow,
        loaded: &Loaded,
        folder: &RunFolder,
        journal: &Journal,
        stop: &CancellationToken,
    ) -> Result<Outcome> {
        let workflow = &loaded.workflow;
        let events = self.log(run).await?;
        let past = Past::of(&events);
        let recalled = Recalled::of(&workflow.agent.instructions, &events)?;
        journal.enter(RunState::Preparing).await?;
        let view = Arc::new(self.view(run, folder).await?);
        let model = models::open(&self.project, &run.model).await?;
        let limits = &workflow.limits;
        let price = models::require_price(&self.project, &run.model, limits)?;
        let guards = guarded::pipeline(loaded, &view);
        let mut budget = Budget::new(limits.cost, limits.tokens, price);
        budget.settle(recalled.used);
        let conversation = match recalled.conversation {
            // What was judged once is not judged again.
            Some(conversation) => conversation,
            None => match self.begin(loaded, &view, &guards, journal).await? {
                Ok(conversation) => conversation,
                Err(denied) => return Ok(denied),
            },
        };
        if stop.is_cancelled() {
            return Ok(Outcome::Stopped);
        }
        if let Some(outcome) = self.finished(run, loaded, &past, folder, journal).await? {
            return Ok(outcome);
        }
        let start = Start { place: recalled.place, lost: recalled.lost, loss: None };
        let work = Work { loaded, model, guards, view, folder, journal, budget, conversation, start, past };
        self.sandboxed(run, work, stop).await
    }

    /// The script the run was queued with, whatever stands in the file now.
    pub(super) async fn load(&self, run: &RunRow) -> Result<Loaded> {
        let help = "drop the input again to run it with the script as it is now";
        let bundle = pinned(&self.store, &run.script, "this run", help).await?;
        script::load_bundle(&self.project, &bundle).await
    }

    /// The run's events, with the whole texts that make up its conversation.
    async fn log(&self, run: &RunRow) -> Result<Vec<Event>> {
        let mut events = self.store.all_events(&run.id).await?;
        for event in &mut events {
            for text in texts(&mut event.what) {
                if matches!(text, Payload::Blob { .. }) {
                    *text = Payload::Inline(self.store.text(text).await?);
                }
            }
        }
        Ok(events)
    }

    async fn view(&self, run: &RunRow, folder: &RunFolder) -> Result<RunView> {
        let claimed = self.store.claimed_files(run).await?;
        let (files, folder) = (run.inputs.clone(), folder.clone());
        let copying = tokio::task::spawn_blocking(move || inputs::snapshots(&files, &claimed, &folder));
        let inputs =
            copying.await.map_err(|error| Diagnostic::new("input::unreadable", error.to_string()))??;
        Ok(RunView {
            id: run.id.clone(),
            workflow: run.workflow.clone(),
            trigger: run.trigger,
            params: run.params.clone(),
            queued_at: run.queued_at,
            fired: self.store.fired(&run.id).await?,
            attempt: 0,
            inputs,
        })
    }

    /// A conversation that begins with the prompt, both past the guardrails; or the denial.
    async fn begin(
        &self,
        loaded: &Loaded,
        view: &Arc<RunView>,
        guards: &Pipeline,
        journal: &Journal,
    ) -> Result<Result<Conversation, Outcome>> {
        for input in &view.inputs {
            let name = input.path.display();
            let subject = Subject::Input { name: &name, size: input.size, file: &input.file };
            if let Judged::Denied { guard, reason } = guarded::judge(guards, subject, journal).await? {
                return Ok(Err(Outcome::Denied { guard, reason }));
            }
        }
        let prompt = match &loaded.workflow.prompt {
            Prompt::Text(text) => text.clone(),
            Prompt::Hook(hook) => loaded.script.prompt(*hook, view.clone()).await?,
        };
        let prompt = match guarded::judge(guards, Subject::Prompt { text: &prompt }, journal).await? {
            Judged::Pass => prompt,
            Judged::Replaced(with) => with,
            Judged::Denied { guard, reason } => return Ok(Err(Outcome::Denied { guard, reason })),
        };
        let prompt = journal.clean(&prompt);
        let digest = Digest::of(&prompt);
        journal.append(What::PromptReady { prompt: journal.payload(&prompt).await?, digest }).await?;
        Ok(Ok(Conversation::new(&loaded.workflow.agent.instructions, prompt)))
    }

    /// The outcome of a run whose files were taken out and checked for the last time, when they still stand in its
    /// folder as they were.
    async fn finished(
        &self,
        run: &RunRow,
        loaded: &Loaded,
        past: &Past,
        folder: &RunFolder,
        journal: &Journal,
    ) -> Result<Option<Outcome>> {
        let Step::Checked(findings) = &past.step else { return Ok(None) };
        if !findings.is_empty() && past.attempt < loaded.workflow.repair.attempts {
            return Ok(None);
        }
        let (folder, collected) = (folder.artifacts(past.attempt), past.collected.clone());
        let looking = tokio::task::spawn_blocking(move || taken_before(&folder, &collected));
        let Ok(Some(artifacts)) = looking.await else { return Ok(None) };
        let engine = self.engines.get(loaded.workflow.sandbox).await?;
        if let Err(diagnostic) = engine.release(&run.id).await {
            journal.append(What::Warned { report: diagnostic.report() }).await?;
        }
        journal.append(What::Resumed { from: past.from, how: How::NoSandbox }).await?;
        Ok(Some(verdict(artifacts, findings.clone())))
    }

    pub(super) fn max_output_tokens(&self, model: &str) -> Option<u64> {
        self.project.config.models.get(model).and_then(|config| config.max_output_tokens)
    }
}

/// What the last check of a run means.
pub(super) fn verdict(artifacts: Vec<Artifact>, findings: Vec<crate::event::finding::Finding>) -> Outcome {
    if findings.is_empty() { Outcome::Passed(artifacts) } else { Outcome::Rejected { artifacts, findings } }
}
