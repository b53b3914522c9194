//! Scripts that are edited while they are watched: new runs use the new version, all others keep theirs.
//!
//! Looked at and not listened for: the few files of a project's scripts cost nothing to look at, and editors write,
//! rename and replace in ways that no file event tells fully.

mod decide;
pub mod in_force;
mod paths;
mod seen;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::config::{FILE, Project};
use crate::diagnostic::{Diagnostic, Report, Result};
use crate::run::deliveries::Environment;
use crate::run::engines::Engines;
use crate::run::intake::WorkflowRoute;
use crate::run::intake::notice::{Notice, Tell};
use crate::run::reload::decide::{Broken, Decided, decide};
use crate::run::reload::in_force::InForce;
use crate::run::reload::seen::Seen;
use crate::script::survey::{Survey, survey};
use crate::store::{Store, Version};

/// Who is shown what is wrong with a script, its source underlined.
type Show = Arc<dyn Fn(&Diagnostic) + Send + Sync>;

/// Keeps the workflows in force as the scripts say.
pub struct Reload {
    /// Whose scripts.
    pub project: Project,
    /// Where versions are kept.
    pub store: Store,
    /// What runs of a new version may need.
    pub engines: Engines,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// What is replaced.
    pub in_force: InForce,
    /// Stands for the model that a workflow names.
    pub model: Option<String>,
    /// Knows the secrets.
    pub env: Environment,
    /// Told what changed.
    pub tell: Tell,
    /// Shown what is wrong.
    pub show: Show,
}

/// What is remembered between two looks.
#[derive(Debug, Default)]
struct Memory {
    /// The files that the scripts asked for.
    asked: BTreeSet<String>,
    /// What was shown of each broken script, and how its files looked then.
    shown: BTreeMap<String, (Report, Seen)>,
    /// What kept a new version from being used.
    refused: Option<Report>,
}

impl Reload {
    /// Between two looks.
    const LOOK: Duration = Duration::from_secs(1);

    /// Files must look the same for so long: editors write in pieces.
    const QUIET: Duration = Duration::from_millis(300);

    /// What could not be used is tried again after this, as an engine may be back.
    const AGAIN: u32 = 30;

    /// Looks until it is dropped. What goes wrong is told and leaves the workflows as they are.
    pub async fn work(&self) {
        let mut memory = Memory::default();
        let settings = self.settings().await;
        let mut is_told = false;
        let mut seen = self.look(&memory.asked).await;
        loop {
            let is_done = self.once(&mut memory, &seen).await;
            if seen.lacks(&memory.asked) {
                seen = self.look(&memory.asked).await;
                continue;
            }
            let mut looks = 0;
            loop {
                self.clock.sleep(Self::LOOK).await;
                if !is_told && self.settings().await != settings {
                    is_told = true;
                    self.tell.say(Notice::Warned(not_reloaded().report()));
                }
                looks += 1;
                let now = self.look(&memory.asked).await;
                if now != seen {
                    seen = self.settle(now, &memory.asked).await;
                    break;
                }
                if !is_done && looks >= Self::AGAIN {
                    break;
                }
            }
        }
    }

    /// Waits until the files look the same for a while.
    async fn settle(&self, mut seen: Seen, asked: &BTreeSet<String>) -> Seen {
        loop {
            self.clock.sleep(Self::QUIET).await;
            let now = self.look(asked).await;
            if now == seen {
                return now;
            }
            seen = now;
        }
    }

    /// Loads every script and puts in force what can be. Gives whether that is all that can be done for now.
    async fn once(&self, memory: &mut Memory, seen: &Seen) -> bool {
        match self.replace(memory, seen).await {
            Ok(()) => {
                memory.refused = None;
                true
            }
            Err(why) => {
                let report = why.report();
                if memory.refused.as_ref() != Some(&report) {
                    (self.show)(&why.warning());
                    memory.refused = Some(report);
                }
                false
            }
        }
    }

    async fn replace(&self, memory: &mut Memory, seen: &Seen) -> Result<()> {
        let survey: Survey = survey(&self.project).await?;
        let asked: BTreeMap<String, BTreeSet<String>> =
            survey.scripts.iter().map(|script| (script.file.clone(), script.asked.clone())).collect();
        memory.asked = asked.values().flatten().cloned().collect();
        if seen.lacks(&memory.asked) {
            // Before anything is decided all of it is looked at, so that no edit slips through in between.
            return Ok(());
        }
        let before = self.in_force.routes();
        let decided =
            decide(&self.project, &self.store, self.model.as_deref(), &self.env, &before, survey).await?;
        self.show_broken(memory, &decided.broken, |file| {
            asked.get(file).map_or_else(Seen::default, |asked| seen.only(asked))
        });
        for route in decided.routes.iter().filter(|route| !before.contains(route)) {
            self.engines.get(route.sandbox).await?;
        }
        self.record(&decided).await?;
        let Decided { routes, swaps, .. } = decided;
        if routes != *before {
            self.in_force.replace(routes);
        }
        for (workflow, how) in swaps {
            self.tell.say(Notice::Reloaded { workflow, how });
        }
        Ok(())
    }

    /// Shows each broken script once for every edit of it.
    fn show_broken(&self, memory: &mut Memory, broken: &[Broken], looks: impl Fn(&str) -> Seen) {
        memory.shown.retain(|file, _| broken.iter().any(|broken| broken.file == *file));
        for Broken { file, why, .. } in broken {
            let now = (why.report(), looks(file));
            if memory.shown.get(file) != Some(&now) {
                (self.show)(why);
                memory.shown.insert(file.clone(), now);
            }
        }
    }

    async fn record(&self, decided: &Decided) -> Result<()> {
        let broken = |route: &WorkflowRoute| {
            let found =
                decided.broken.iter().find(|broken| broken.workflow.as_deref() == Some(&route.workflow));
            found.map(|broken| broken.why.report())
        };
        let versions: Vec<Version> = decided
            .routes
            .iter()
            .map(|route| Version {
                workflow: route.workflow.clone(),
                bundle: route.bundle.clone(),
                since: self.clock.now(),
                broken: broken(route),
            })
            .collect();
        self.store.know_versions(&versions).await
    }

    async fn look(&self, asked: &BTreeSet<String>) -> Seen {
        let (root, folder) = (self.project.root.clone(), self.project.config.folders.workflows.clone());
        let asked = asked.clone();
        let looking = tokio::task::spawn_blocking(move || Seen::look(&root, &folder, &asked));
        looking.await.unwrap_or_default()
    }

    /// How the settings look.
    async fn settings(&self) -> Seen {
        self.look(&BTreeSet::from([FILE.to_owned()])).await.only(&BTreeSet::from([FILE.to_owned()]))
    }
}

fn not_reloaded() -> Diagnostic {
    Diagnostic::new("watch::settings", format!("{FILE} was changed, and is read at the start only"))
        .help("stop `tidemill watch` and start it again; runs in work go on then")
        .warning()
}

impl std::fmt::Debug for Reload {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Reload").field("root", &self.project.root).finish_non_exhaustive()
    }
}
