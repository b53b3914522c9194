//! One run through the story: prepare, loop, check, repair, publish.

use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::agent::budget::{Budget, Limit};
use crate::agent::conversation::Conversation;
use crate::agent::deadline::{Cut, Deadline};
use crate::agent::tools::Toolbox;
use crate::agent::{Agent, Ended, Journal as _};
use crate::artifact::{self, Destination, Receipt};
use crate::clock::{Clock, SystemClock};
use crate::config::Project;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::What;
use crate::event::finding::Finding;
use crate::event::id::Digest;
use crate::event::state::RunState;
use crate::event::usage::Usage;
use crate::guard::{Outcome as Judged, Pipeline, Subject};
use crate::model::Model;
use crate::run::engines::Engines;
use crate::run::folder::RunFolder;
use crate::run::journal::Journal;
use crate::run::outcome::Outcome;
use crate::run::patience::patiently;
use crate::run::queue::{Conduct, may_pass};
use crate::run::workspace::{Filling, Sources};
use crate::run::{checks, guarded, inputs, models, network};
use crate::sandbox::{Progress, ReadyImage, Sandbox, Spec};
use crate::script::{self, Loaded};
use crate::store::{RunRow, Store};
use crate::workflow::Workflow;
use crate::workflow::agent::Prompt;
use crate::workflow::image::Origin;
use crate::workflow::sandbox::Kind;
use crate::workflow::view::{Artifact, RunView};

/// Carries runs out.
#[derive(Clone)]
pub struct Conductor {
    /// Whose runs.
    pub project: Project,
    /// Where they are recorded.
    pub store: Store,
    /// What sandboxes are made with.
    pub engines: Engines,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Who is told what takes long.
    pub progress: Arc<dyn Progress>,
    /// What becomes of a run that could go on another time.
    pub unfinished: Unfinished,
}

/// What becomes of a run that is stopped, or fails by something that passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfinished {
    /// A person waits for it, or does not want it any more: it ends `cancelled` or `failed`.
    Ends,
    /// The queue keeps it: it is left as it is and starts over later.
    Waits,
}

/// Bytes of a script with everything it requires; more is no script.
const LARGEST_SCRIPT: u64 = 64 << 20;

/// What one run is made of, once its script is loaded.
struct Work<'a> {
    loaded: &'a Loaded,
    model: Box<dyn Model>,
    guards: Pipeline,
    view: Arc<RunView>,
    prompt: String,
    folder: &'a RunFolder,
    journal: &'a Journal,
    budget: Budget,
}

#[async_trait]
impl Conduct for Conductor {
    async fn conduct(&self, run: &RunRow, stop: CancellationToken) -> Result<RunState> {
        let journal = Journal::of(&self.project, &self.store, &run.id);
        let folder = RunFolder::new(&self.project.state(), &run.id);
        let (journal, outcome) = match self.load(run).await {
            Ok(loaded) => {
                let journal = journal.guarding(secrets(&loaded.workflow));
                let told = self.story(run, &loaded, &folder, &journal, &stop).await;
                (journal, told.unwrap_or_else(Outcome::Failed))
            }
            Err(diagnostic) => (journal, Outcome::Failed(diagnostic)),
        };
        match outcome {
            Outcome::Stopped if self.unfinished == Unfinished::Waits => {
                folder.tidy();
                Ok(RunState::Running)
            }
            Outcome::Failed(error) if self.unfinished == Unfinished::Waits && may_pass(&error) => {
                folder.tidy();
                Err(error)
            }
            outcome => self.end(run, outcome, &folder, &journal).await,
        }
    }
}

impl Conductor {
    /// For the runs of a project, by the machine's own clock.
    pub fn new(
        project: &Project,
        store: &Store,
        engines: Engines,
        progress: Arc<dyn Progress>,
        unfinished: Unfinished,
    ) -> Self {
        let (project, store, clock) = (project.clone(), store.clone(), Arc::new(SystemClock::new()));
        Self { project, store, engines, clock, progress, unfinished }
    }

    /// Everything up to the last check.
    async fn story(
        &self,
        run: &RunRow,
        loaded: &Loaded,
        folder: &RunFolder,
        journal: &Journal,
        stop: &CancellationToken,
    ) -> Result<Outcome> {
        journal.enter(RunState::Preparing).await?;
        // What an attempt left that a dead process began.
        folder.forget_artifacts();
        let view = Arc::new(self.view(run, folder).await?);
        let model = models::open(&self.project, &run.model).await?;
        let limits = &loaded.workflow.limits;
        let price = models::require_price(&self.project, &run.model, limits)?;
        let guards = guarded::pipeline(loaded, &view);
        for input in &view.inputs {
            let name = input.path.display();
            let subject = Subject::Input { name: &name, size: input.size, file: &input.file };
            if let Judged::Denied { guard, reason } = guarded::judge(&guards, subject, journal).await? {
                return Ok(Outcome::Denied { guard, reason });
            }
        }
        let prompt = match self.prompt(loaded, &view, &guards, journal).await? {
            Ok(prompt) => prompt,
            Err(denied) => return Ok(denied),
        };
        let mut budget = Budget::new(limits.cost, limits.tokens, price);
        // A run that starts over has spent something already.
        budget.settle(self.usage(run).await?);
        if stop.is_cancelled() {
            return Ok(Outcome::Stopped);
        }
        let work = Work { loaded, model, guards, view, prompt, folder, journal, budget };
        self.sandboxed(run, work, stop).await
    }

    /// The script the run was queued with, whatever stands in the file now.
    async fn load(&self, run: &RunRow) -> Result<Loaded> {
        let bytes = self.store.blobs().read(&run.script, LARGEST_SCRIPT).await?;
        let bundle = serde_json::from_slice(&bytes).map_err(|error| {
            Diagnostic::new("run::pin", format!("the script this run is pinned to cannot be read: {error}"))
                .help("drop the input again to run it with the script as it is now")
        })?;
        script::load_bundle(&self.project, &bundle).await
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

    /// The prompt past its guardrails, or the denial.
    async fn prompt(
        &self,
        loaded: &Loaded,
        view: &Arc<RunView>,
        guards: &Pipeline,
        journal: &Journal,
    ) -> Result<Result<String, Outcome>> {
        let prompt = match &loaded.workflow.prompt {
            Prompt::Text(text) => text.clone(),
            Prompt::Hook(hook) => loaded.script.prompt(*hook, view.clone()).await?,
        };
        let prompt = match guarded::judge(guards, Subject::Prompt { text: &prompt }, journal).await? {
            Judged::Pass => prompt,
            Judged::Replaced(with) => with,
            Judged::Denied { guard, reason } => return Ok(Err(Outcome::Denied { guard, reason })),
        };
        let digest = Digest::of(&prompt);
        journal.append(What::PromptReady { prompt: journal.payload(&prompt).await?, digest }).await?;
        Ok(Ok(prompt))
    }

    /// Makes the sandbox, works in it, and removes it whatever happened in between.
    async fn sandboxed(&self, run: &RunRow, work: Work<'_>, stop: &CancellationToken) -> Result<Outcome> {
        let workflow = &work.loaded.workflow;
        let engine = self.engines.get(workflow.sandbox).await?;
        let image = tokio::select! {
            () = stop.cancelled() => return Ok(Outcome::Stopped),
            image = engine.prepare(&workflow.image, self.progress.as_ref()) => image?,
        };
        announce_image(&image, work.journal).await?;
        if stop.is_cancelled() {
            return Ok(Outcome::Stopped);
        }
        let sources = Sources {
            project: &self.project,
            store: &self.store,
            clock: self.clock.as_ref(),
            progress: self.progress.as_ref(),
        };
        let filling = tokio::select! {
            () = stop.cancelled() => return Ok(Outcome::Stopped),
            filling = sources.fill(&workflow.manifest, &work.view) => filling?,
        };
        filling.fits(workflow.limits.disk)?;
        // Making image and files ready is the machine's work, not the run's: the wall limit counts from here.
        let deadline = Deadline::new(self.clock.clone(), stop.clone(), workflow.limits.wall);
        let spec = Spec {
            limits: workflow.limits.clone(),
            environment: workflow.environment.clone(),
            mounts: workflow.mounts.clone(),
            outside: network::outside(&self.project, &workflow.network)?,
            network: network::declared(&self.project, &workflow.network),
        };
        let sandbox = tokio::select! {
            () = stop.cancelled() => return Ok(Outcome::Stopped),
            sandbox = engine.start(&run.id, &image, &spec) => sandbox?,
        };
        let journal = work.journal;
        let telling = network::tell(sandbox.events(), journal.clone(), &spec.network);
        let outcome = self.in_sandbox(work, filling, &sandbox, &deadline).await;
        let removing = async {
            let removed = sandbox.remove().await;
            telling.finish().await?;
            Ok::<_, Diagnostic>(removed)
        };
        let removed = match patiently(removing, stop, self.clock.as_ref()).await {
            Ok(removed) => removed?,
            Err(left) => Err(left),
        };
        if let Err(diagnostic) = removed {
            journal.append(What::Warned { report: diagnostic.report() }).await?;
        }
        outcome
    }

    async fn in_sandbox(
        &self,
        mut work: Work<'_>,
        filling: Filling,
        sandbox: &Arc<dyn Sandbox>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        let (workflow, journal) = (&work.loaded.workflow, work.journal);
        let isolation = sandbox.isolation().clone();
        journal.append(What::SandboxStarted { container: sandbox.id().to_owned(), isolation }).await?;
        let placed = match deadline.race(sandbox.put(filling.files)).await {
            Ok(placed) => placed.map_err(|error| error.during("fill the workspace"))?,
            Err(cut) => return Ok(cut_short(cut, deadline)),
        };
        let entries = filling.origins.into_iter().take(What::ENTRIES).collect();
        journal.append(What::WorkspaceFilled { files: placed.files, bytes: placed.bytes, entries }).await?;
        let tools = match workflow.sandbox {
            Kind::Docker | Kind::Local => Toolbox::sandboxed(sandbox, workflow.limits.command),
            Kind::None => Toolbox::files(sandbox),
        };
        let agent = Agent {
            model: work.model.as_ref(),
            tools: &tools,
            guards: &work.guards,
            journal,
            clock: self.clock.as_ref(),
            deadline,
            max_turns: workflow.agent.max_turns,
            max_output_tokens: self.max_output_tokens(work.model.name()),
        };
        let mut conversation = Conversation::new(&workflow.agent.instructions, &work.prompt);
        let mut attempt = 0;
        loop {
            journal.enter(RunState::Running).await?;
            match agent.work(&mut conversation, &mut work.budget).await? {
                Ended::Answered(_) => {}
                Ended::Denied { guard, reason } => return Ok(Outcome::Denied { guard, reason }),
                Ended::Stopped => return Ok(Outcome::Stopped),
                Ended::Exhausted(limit) => {
                    let taking =
                        checks::collect(work.loaded, sandbox.as_ref(), work.folder, attempt, journal);
                    let artifacts = match deadline.race_closing(taking).await {
                        Ok(taken) => taken?.artifacts,
                        // What a sandbox that does not answer holds is lost; why the run ends is not.
                        Err(_) => Vec::new(),
                    };
                    return Ok(Outcome::Exhausted { limit, artifacts });
                }
            }
            journal.enter(RunState::Checking).await?;
            let view = RunView { attempt, ..(*work.view).clone() };
            let checking = checks::check(work.loaded, sandbox.as_ref(), &view, work.folder, journal);
            let checked = match deadline.race_closing(checking).await {
                Ok(checked) => checked?,
                Err(cut) => return Ok(cut_short(cut, deadline)),
            };
            if checked.findings.is_empty() {
                return Ok(Outcome::Passed(checked.artifacts));
            }
            if attempt >= workflow.repair.attempts {
                return Ok(Outcome::Rejected { artifacts: checked.artifacts, findings: checked.findings });
            }
            attempt += 1;
            journal.enter(RunState::Repairing).await?;
            conversation.say(checks::repair_message(&checked.findings));
        }
    }

    /// What the run has used so far, in all its attempts.
    async fn usage(&self, run: &RunRow) -> Result<Usage> {
        Ok(self.store.run(&run.id).await?.map(|row| row.usage).unwrap_or_default())
    }

    fn max_output_tokens(&self, model: &str) -> Option<u64> {
        self.project.config.models.get(model).and_then(|config| config.max_output_tokens)
    }

    /// Publishes or puts aside, and ends the run.
    async fn end(
        &self,
        run: &RunRow,
        outcome: Outcome,
        folder: &RunFolder,
        journal: &Journal,
    ) -> Result<RunState> {
        let outcome = match outcome {
            Outcome::Passed(artifacts) => match self.publish(run, &artifacts, journal).await {
                Ok(()) => Outcome::Passed(artifacts),
                Err(diagnostic) => {
                    self.keep(&artifacts, &[], folder, journal).await?;
                    Outcome::Failed(diagnostic)
                }
            },
            other => other,
        };
        match &outcome {
            Outcome::Rejected { artifacts, findings } => {
                self.keep(artifacts, findings, folder, journal).await?;
            }
            Outcome::Exhausted { artifacts, .. } => {
                self.keep(artifacts, &[], folder, journal).await?;
            }
            _ => {}
        }
        let row = self.store.run(&run.id).await?;
        let (usage, cost) = row.map_or((Usage::default(), None), |row| (row.usage, row.cost));
        let state = outcome.state();
        journal.append(What::RunEnded { state, report: outcome.report(), usage, cost }).await?;
        folder.tidy();
        Ok(state)
    }

    async fn publish(&self, run: &RunRow, artifacts: &[Artifact], journal: &Journal) -> Result<()> {
        journal.enter(RunState::Publishing).await?;
        // A project's own outbox is made when it is missing; one elsewhere may be a share that is not mounted.
        if self.project.config.folders.outbox.is_relative() {
            RunFolder::make(&self.project.outbox())?;
        }
        let receipt = Receipt::fold(&self.store.all_events(&run.id).await?)?;
        let destination = Destination::of(self.project.outbox(), &run.workflow, &run.inputs, &run.id);
        let artifacts = artifacts.to_vec();
        let publishing =
            tokio::task::spawn_blocking(move || artifact::publish(&destination, &artifacts, &receipt));
        let published =
            publishing.await.map_err(|error| Diagnostic::new("artifact::publish", error.to_string()))??;
        journal.append(published.event(&self.project.root)).await
    }

    /// Keeps files of a run that publishes nothing. Why it ended matters more than that this fails.
    async fn keep(
        &self,
        artifacts: &[Artifact],
        findings: &[Finding],
        folder: &RunFolder,
        journal: &Journal,
    ) -> Result<()> {
        if artifacts.is_empty() && findings.is_empty() {
            return Ok(());
        }
        let (kept, artifacts, findings) = (folder.kept(), artifacts.to_vec(), findings.to_vec());
        let target = kept.clone();
        let keeping =
            tokio::task::spawn_blocking(move || artifact::keep_aside(&target, &artifacts, &findings));
        let done =
            keeping.await.unwrap_or_else(|error| Err(Diagnostic::new("artifact::keep", error.to_string())));
        let what = match done {
            Ok(()) => What::KeptAside { folder: self.relative(&kept) },
            Err(diagnostic) => What::Warned { report: diagnostic.report() },
        };
        journal.append(what).await
    }

    fn relative(&self, path: &std::path::Path) -> String {
        path.strip_prefix(&self.project.root).unwrap_or(path).display().to_string()
    }
}

/// The variables with all a workflow's secrets.
fn secrets(workflow: &Workflow) -> Vec<String> {
    let mut names = network::secrets(&workflow.network);
    if let Origin::Folder(folder) = &workflow.image.origin {
        names.extend(folder.secrets.values().cloned());
    }
    names
}

/// The end of a run that waited for something else than the model or a tool.
fn cut_short(cut: Cut, deadline: &Deadline) -> Outcome {
    match cut {
        Cut::Stopped => Outcome::Stopped,
        Cut::Wall => Outcome::Exhausted { limit: Limit::wall(deadline.wall()), artifacts: Vec::new() },
    }
}

async fn announce_image(image: &ReadyImage, journal: &Journal) -> Result<()> {
    let what = What::ImageReady {
        reference: image.reference.clone(),
        digest: image.digest.clone(),
        substituted_base: image.substituted_base.clone(),
    };
    journal.append(what).await
}
