//! The part of a run that needs a sandbox: the agent works, its files are taken out and checked, findings go back.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::agent::budget::Limit;
use crate::agent::deadline::{Cut, Deadline};
use crate::agent::recall::Place;
use crate::agent::resume::Start;
use crate::agent::tools::{Effect, Toolbox};
use crate::agent::{Agent, Ended, Journal as _, Keeper};
use crate::diagnostic::{Diagnostic, Result};
use crate::event::What;
use crate::event::resumed::How;
use crate::event::said::Occasion;
use crate::event::state::RunState;
use crate::run::checkpoint::{Checkpoints, Known};
use crate::run::conductor::{Conductor, Unfinished};
use crate::run::outcome::Outcome;
use crate::run::past::{Past, Step};
use crate::run::patience::patiently;
use crate::run::shelter::Shelter;
use crate::run::story::{Work, verdict};
use crate::run::workspace::Sources;
use crate::run::{checks, network};
use crate::sandbox::{Sandbox, Spec};
use crate::store::RunRow;
use crate::workflow::manifest::Access;
use crate::workflow::sandbox::Kind;
use crate::workflow::view::RunView;

/// A run that is stopped has this long to keep its workspace.
const LAST_KEEP: Duration = Duration::from_secs(5);

/// For a run that does not go on when it is interrupted.
struct KeepsNothing;

#[async_trait]
impl Keeper for KeepsNothing {
    async fn keep(&self, _: u32) -> Result<()> {
        Ok(())
    }
}

impl Conductor {
    /// Makes the sandbox, works in it, and removes it whatever happened in between.
    pub(super) async fn sandboxed(
        &self,
        run: &RunRow,
        work: Work<'_>,
        stop: &CancellationToken,
    ) -> Result<Outcome> {
        let (workflow, journal) = (&work.loaded.workflow, work.journal);
        let engine = self.engines.get(workflow.sandbox).await?;
        let engine = engine.as_ref();
        let Some(image) = self.image(engine, workflow, &work.past, journal, stop).await? else {
            return Ok(Outcome::Stopped);
        };
        if stop.is_cancelled() {
            return Ok(Outcome::Stopped);
        }
        let spec = Spec {
            limits: workflow.limits.clone(),
            environment: workflow.environment.clone(),
            mounts: workflow.mounts.clone(),
            outside: network::outside(&self.project, &workflow.network)?,
            network: network::declared(&self.project, &workflow.network),
        };
        let left = self.left_running(engine, run, &work.past, &spec, journal).await?;
        let sources = Sources {
            project: &self.project,
            store: &self.store,
            clock: self.clock.as_ref(),
            progress: self.progress.as_ref(),
        };
        let filling = tokio::select! {
            () = stop.cancelled() => return Ok(Outcome::Stopped),
            filling = sources.fill_for(work.loaded, &work.view) => filling,
        };
        let filling = match &left {
            // It is filled already; what cannot be found any more is only kept with the rest.
            Some(_) => filling.unwrap_or_default(),
            None => filling?,
        };
        filling.fits(workflow.limits.disk)?;
        let given = filling.files.iter().filter(|file| file.access == Access::ReadOnly);
        let given = given.map(|file| file.path.clone()).collect();
        // Making image and files ready is the machine's work, not the run's: the wall limit counts from here.
        let (clock, stopped) = (self.clock.clone(), stop.clone());
        let deadline = Deadline::after(clock, stopped, workflow.limits.wall, work.past.worked);
        let (shelter, filling) = if let Some(shelter) = left {
            (shelter, None)
        } else {
            let shelter = tokio::select! {
                () = stop.cancelled() => return Ok(Outcome::Stopped),
                shelter = self.start(engine, run, &image, &spec, &work.past) => shelter?,
            };
            (shelter, Some(filling))
        };
        let sandbox = shelter.sandbox.clone();
        let telling = network::tell(sandbox.events(), journal.clone(), &spec.network);
        let working = async {
            if let Some(filling) = filling
                && let Some(cut) =
                    self.fill(sandbox.as_ref(), filling, &work.past, &deadline, journal).await?
            {
                return Ok(cut_short(cut, &deadline));
            }
            let checkpoints = Checkpoints {
                sandbox: sandbox.as_ref(),
                store: &self.store,
                journal,
                clock: self.clock.as_ref(),
                folder: work.folder.passing(),
                room: workflow.limits.disk,
                given,
                known: Mutex::new(Known::default()),
            };
            self.in_sandbox(work, &shelter, &checkpoints, &deadline).await
        };
        let outcome = working.await;
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
        shelter: &Shelter,
        checkpoints: &Checkpoints<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        let (workflow, journal) = (&work.loaded.workflow, work.journal);
        let sandbox: &Arc<dyn Sandbox> = &shelter.sandbox;
        let tools = match workflow.sandbox {
            Kind::Docker | Kind::Local => Toolbox::sandboxed(sandbox, workflow.limits.command),
            Kind::None => Toolbox::files(sandbox),
        };
        let keeper: &dyn Keeper = match self.unfinished {
            Unfinished::Waits => checkpoints,
            Unfinished::Ends => &KeepsNothing,
        };
        let agent = Agent {
            model: work.model.as_ref(),
            tools: &tools,
            guards: &work.guards,
            journal,
            keeper,
            continuity: shelter.continuity(),
            clock: self.clock.as_ref(),
            deadline,
            max_turns: workflow.agent.max_turns,
            max_output_tokens: self.max_output_tokens(work.model.name()),
        };
        if work.past.is_prompted {
            journal.append(What::Resumed { from: work.past.from, how: shelter.how }).await?;
        }
        let mut start = Start { loss: loss(&work.past, shelter.how, &tools), ..work.start };
        let mut attempt = work.past.attempt;
        let mut step = match work.past.step {
            // What is gone cannot be taken out.
            Step::Check if start.loss.is_some() => Step::Work,
            // What was taken out is gone.
            Step::Checked(findings) if findings.is_empty() => Step::Check,
            step => step,
        };
        loop {
            step = match step {
                Step::Work => {
                    journal.enter(RunState::Running).await?;
                    let from = std::mem::replace(&mut start, Start::asking());
                    match agent.resume(from, &mut work.conversation, &mut work.budget).await? {
                        Ended::Answered(_) => Step::Check,
                        Ended::Denied { guard, reason } => return Ok(Outcome::Denied { guard, reason }),
                        Ended::Stopped => {
                            self.keep_at_last(keeper, work.conversation.turn).await?;
                            return Ok(Outcome::Stopped);
                        }
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
                }
                Step::Check => {
                    journal.enter(RunState::Checking).await?;
                    let view = RunView { attempt, ..(*work.view).clone() };
                    let checking = checks::check(work.loaded, sandbox.as_ref(), &view, work.folder, journal);
                    let checked = match deadline.race_closing(checking).await {
                        Ok(checked) => checked?,
                        Err(cut) => return Ok(cut_short(cut, deadline)),
                    };
                    if checked.findings.is_empty() || attempt >= workflow.repair.attempts {
                        return Ok(verdict(checked.artifacts, checked.findings));
                    }
                    Step::Checked(checked.findings)
                }
                // As after a check whose files are gone: they are taken out again.
                Step::Checked(_) if attempt >= workflow.repair.attempts => Step::Check,
                Step::Checked(findings) => {
                    attempt += 1;
                    journal.enter(RunState::Repairing).await?;
                    let words = checks::repair_message(&findings);
                    agent.say(&mut work.conversation, Occasion::Findings, &words).await?;
                    start.place = Place::Asks;
                    Step::Work
                }
            };
        }
    }

    /// Keeps the workspace of a run that is stopped and goes on later: its sandbox goes away with this process.
    async fn keep_at_last(&self, keeper: &dyn Keeper, turn: u32) -> Result<()> {
        if turn == 0 {
            return Ok(());
        }
        tokio::select! {
            kept = keeper.keep(turn) => kept,
            () = self.clock.sleep(LAST_KEEP) => Ok(()),
        }
    }
}

/// What an agent must be told when its workspace is older than what it has done in it.
fn loss(past: &Past, how: How, tools: &Toolbox) -> Option<String> {
    let lost: Vec<_> = past.since.iter().filter(|call| tools.effect(&call.tool) == Effect::Changes).collect();
    let is_new = match how {
        How::SameSandbox | How::NoSandbox => false,
        How::Checkpoint { .. } | How::NewSandbox => true,
    };
    if !past.is_loss_untold && (!is_new || lost.is_empty()) {
        return None;
    }
    let since = match &past.checkpoint {
        Some((turn, _)) => format!("as it was after your turn {turn}"),
        None => "as it was at the beginning".to_owned(),
    };
    let mut words = format!("The sandbox was lost and made anew. /workspace is {since}, and /tmp is empty.");
    if !lost.is_empty() {
        words.push_str(" What these calls did there is gone:");
        for call in lost {
            let _ = write!(words, "\n- {} {}", call.tool, call.arguments);
        }
    }
    words.push_str("\nDo again what is still needed.");
    Some(words)
}

/// The end of a run that waited for something else than the model or a tool.
fn cut_short(cut: Cut, deadline: &Deadline) -> Outcome {
    match cut {
        Cut::Stopped => Outcome::Stopped,
        Cut::Wall => Outcome::Exhausted { limit: Limit::wall(deadline.wall()), artifacts: Vec::new() },
    }
}
