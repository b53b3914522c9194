//! The workflows of a project: which version new runs are made of, and what is wrong with those that are not.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use crate::config::Project;
use crate::diagnostic::{Diagnostic, Report, Result};
use crate::event::id::Digest;
use crate::run::route::{pinned, version};
use crate::script::survey::{Outcome, survey};
use crate::script::{self, Bundle, Loaded};
use crate::store::{RunFilter, RunRow, Store, Version};
use crate::workflow::Workflow;
use crate::workflow::schedule::Schedule;

/// A workflow, or a script that is none because of its mistakes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Listed {
    /// Its name; nothing when its script never loaded.
    pub workflow: Option<String>,
    /// The root-relative script.
    pub file: String,
    /// What new runs are pinned to; nothing when there can be none.
    pub version: Option<Digest>,
    /// Since when that is in force; nothing when it was never watched.
    pub since: Option<Timestamp>,
    /// What starts it.
    pub triggers: Vec<String>,
    /// Name of its model.
    pub model: Option<String>,
    /// Where its commands run.
    pub sandbox: Option<&'static str>,
    /// Its newest run.
    pub last_run: Option<RunRow>,
    /// Why its script as it stands is not in force.
    pub broken: Option<Report>,
}

/// Which versions count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// What a daemon uses, which may be a moment behind the files.
    InForce,
    /// What the files say.
    Files,
}

/// All workflows, by name, and after them the scripts that are none. Without a store nothing is known but the files.
pub async fn list(project: &Project, store: Option<&Store>, counts: Counts) -> Result<Vec<Listed>> {
    let mut versions: BTreeMap<String, (Version, Bundle)> = BTreeMap::new();
    if let Some(store) = store {
        for version in store.versions().await? {
            // One whose script was lost is as good as unknown.
            if let Ok(bundle) =
                pinned(store, &version.bundle, "a workflow", "start `tidemill watch` again").await
            {
                versions.insert(version.workflow.clone(), (version, bundle));
            }
        }
    }
    let mut listed = Vec::new();
    for script in survey(project).await?.scripts {
        match script.outcome {
            Outcome::Module => {}
            Outcome::Workflow(loaded) => {
                let known = versions.remove(&loaded.workflow.name);
                listed.push(of_workflow(project, *loaded, known, counts).await?);
            }
            Outcome::Broken(why) => {
                let home = versions.iter().find(|(_, (_, bundle))| bundle.entry == script.file);
                let name = home.map(|(name, _)| name.clone());
                let known = name.and_then(|name| versions.remove(&name));
                listed.push(of_broken(project, script.file, &why, known).await);
            }
        }
    }
    if let Some(store) = store {
        for one in &mut listed {
            one.last_run = last_run(store, one.workflow.as_deref()).await?;
        }
    }
    listed.sort_by(|left, right| {
        let key = |one: &Listed| (one.workflow.is_none(), one.workflow.clone(), one.file.clone());
        key(left).cmp(&key(right))
    });
    Ok(listed)
}

/// The workflows in force whose versions can still be loaded, whatever their scripts say now.
pub async fn in_force(project: &Project, store: &Store) -> Result<Vec<Workflow>> {
    let mut found = Vec::new();
    for version in store.versions().await? {
        // One whose script was lost is as good as unknown.
        if let Ok(bundle) = pinned(store, &version.bundle, "a workflow", "start `tidemill watch` again").await
            && let Ok(loaded) = script::load_bundle(project, &bundle).await
        {
            found.push(loaded.workflow);
        }
    }
    Ok(found)
}

async fn of_workflow(
    project: &Project,
    loaded: Loaded,
    known: Option<(Version, Bundle)>,
    counts: Counts,
) -> Result<Listed> {
    let file = loaded.bundle.entry.clone();
    let now = version(&loaded.bundle)?;
    let Some((known, bundle)) = known else {
        return Ok(Listed { version: Some(now), ..of(&loaded.workflow, file) });
    };
    if known.bundle == now {
        let broken = known.broken.filter(|_| counts == Counts::InForce);
        return Ok(Listed {
            version: Some(now),
            since: Some(known.since),
            broken,
            ..of(&loaded.workflow, file)
        });
    }
    if counts == Counts::InForce
        && let Ok(before) = script::load_bundle(project, &bundle).await
    {
        return Ok(Listed {
            version: Some(known.bundle),
            since: Some(known.since),
            broken: known.broken,
            ..of(&before.workflow, file)
        });
    }
    Ok(Listed { version: Some(now), ..of(&loaded.workflow, file) })
}

/// A broken script, with what the version before it says.
async fn of_broken(
    project: &Project,
    file: String,
    why: &Diagnostic,
    known: Option<(Version, Bundle)>,
) -> Listed {
    let broken = Some(why.report());
    let nothing = Listed {
        workflow: None,
        file: file.clone(),
        version: None,
        since: None,
        triggers: Vec::new(),
        model: None,
        sandbox: None,
        last_run: None,
        broken: broken.clone(),
    };
    let Some((known, bundle)) = known else { return nothing };
    match script::load_bundle(project, &bundle).await {
        Ok(before) => Listed {
            version: Some(known.bundle),
            since: Some(known.since),
            broken,
            ..of(&before.workflow, file)
        },
        Err(_) => Listed { workflow: Some(known.workflow), ..nothing },
    }
}

fn of(workflow: &Workflow, file: String) -> Listed {
    let drops = workflow.triggers.iter().map(|drop| drop.glob.clone());
    let schedules = workflow.schedules.iter().map(Schedule::describe);
    let webhooks = workflow.webhooks.iter().map(|webhook| format!("POST /hooks/{}", webhook.path));
    Listed {
        workflow: Some(workflow.name.clone()),
        file,
        version: None,
        since: None,
        triggers: drops.chain(schedules).chain(webhooks).collect(),
        model: Some(workflow.agent.model.clone()),
        sandbox: Some(workflow.sandbox.as_str()),
        last_run: None,
        broken: None,
    }
}

async fn last_run(store: &Store, workflow: Option<&str>) -> Result<Option<RunRow>> {
    let Some(workflow) = workflow else { return Ok(None) };
    let filter = RunFilter { workflow: Some(workflow.to_owned()), limit: Some(1), ..RunFilter::default() };
    Ok(store.runs(&filter).await?.pop())
}
