//! Which workflows are in force after the scripts were looked at.

use std::collections::BTreeMap;

use crate::config::Project;
use crate::diagnostic::{Diagnostic, Result};
use crate::run::deliveries::{self, Environment};
use crate::run::hooks::Table;
use crate::run::intake::WorkflowRoute;
use crate::run::intake::notice::Swap;
use crate::run::reload::paths::contested;
use crate::run::route::{pinned, route};
use crate::run::schedules::plans;
use crate::script::Loaded;
use crate::script::survey::{Outcome, Survey, Surveyed};
use crate::store::Store;

/// What is to be in force.
#[derive(Debug, Default)]
pub(super) struct Decided {
    /// The workflows, by name.
    pub(super) routes: Vec<WorkflowRoute>,
    /// What changes for new runs: workflow and how.
    pub(super) swaps: Vec<(String, Swap)>,
    /// Scripts that cannot be used as they are.
    pub(super) broken: Vec<Broken>,
}

/// A script that cannot be used as it is.
#[derive(Debug)]
pub(super) struct Broken {
    /// Which.
    pub(super) file: String,
    /// The workflow whose version from before it keeps, when it had one.
    pub(super) workflow: Option<String>,
    /// What is wrong.
    pub(super) why: Diagnostic,
}

/// Decides: a script that loads is in force, one with mistakes keeps the version it had, one that is gone has none.
pub(super) async fn decide(
    project: &Project,
    store: &Store,
    model: Option<&str>,
    env: &Environment,
    before: &[WorkflowRoute],
    survey: Survey,
) -> Result<Decided> {
    let mut homes = BTreeMap::new();
    for route in before {
        homes.insert(home(store, route).await?, route);
    }
    let mut found: BTreeMap<String, (String, WorkflowRoute)> = BTreeMap::new();
    let mut broken: Vec<(String, Diagnostic)> = Vec::new();
    for Surveyed { file, outcome, .. } in survey.scripts {
        let loaded = match outcome {
            Outcome::Workflow(loaded) => loaded,
            Outcome::Module => continue,
            Outcome::Broken(why) => {
                broken.push((file, why));
                continue;
            }
        };
        let route = match usable(project, store, &loaded, model, env).await {
            Ok(route) => route,
            Err(why) if why.code().starts_with("store::") => return Err(why),
            Err(why) => {
                broken.push((file, why));
                continue;
            }
        };
        // Of two that claim a name, the one that has it keeps it.
        let name = route.workflow.clone();
        let has_it = homes.get(&file).is_some_and(|known| known.workflow == name);
        match found.get(&name) {
            Some((other, _)) if !has_it => broken.push((file, twice(&name, other))),
            other => {
                if let Some((other, _)) = other {
                    broken.push((other.clone(), twice(&name, &file)));
                }
                found.insert(name, (file, route));
            }
        }
    }
    loop {
        let kept = broken.iter().filter_map(|(file, _)| homes.get_key_value(file));
        let kept = kept.filter(|(_, route)| !found.contains_key(&route.workflow));
        let kept = kept.map(|(file, route)| (file.as_str(), *route));
        let now: Vec<_> = kept.chain(found.values().map(|(file, route)| (file.as_str(), route))).collect();
        let Some((loser, why)) = contested(before, &now) else { break };
        let Some((file, _)) = found.remove(&loser) else { break };
        broken.push((file, why));
    }
    let mut decided = Decided::default();
    for (file, why) in broken {
        let kept = homes.get(&file).filter(|route| !found.contains_key(&route.workflow));
        if let Some(route) = kept {
            decided.routes.push((*route).clone());
        }
        decided.broken.push(Broken { file, workflow: kept.map(|route| route.workflow.clone()), why });
    }
    decided.routes.extend(found.into_values().map(|(_, route)| route));
    decided.routes.sort_by(|left, right| left.workflow.cmp(&right.workflow));
    decided.swaps = swaps(before, &decided.routes);
    Ok(decided)
}

/// The route of a workflow, when it can be run, its schedules can be waited for and its secrets are there.
async fn usable(
    project: &Project,
    store: &Store,
    loaded: &Loaded,
    model: Option<&str>,
    env: &Environment,
) -> Result<WorkflowRoute> {
    let workflow = &loaded.workflow;
    plans(&workflow.name, &workflow.schedules)?;
    deliveries::check(&workflow.name, &workflow.notify, env.as_ref())?;
    let route = route(project, store, loaded, model).await?;
    Table::of(std::slice::from_ref(&route), env.as_ref())?;
    Ok(route)
}

/// The script a workflow in force is made of.
async fn home(store: &Store, route: &WorkflowRoute) -> Result<String> {
    let workflow = format!("that `{}`", route.workflow);
    Ok(pinned(store, &route.bundle, &workflow, "start `tidemill watch` again").await?.entry)
}

fn swaps(before: &[WorkflowRoute], after: &[WorkflowRoute]) -> Vec<(String, Swap)> {
    let find = |routes: &[WorkflowRoute], name: &str| {
        routes.iter().find(|route| route.workflow == name).map(|route| route.bundle.clone())
    };
    let came = after.iter().filter_map(|route| {
        let swap = match find(before, &route.workflow) {
            None => Swap::New(route.bundle.clone()),
            Some(bundle) if bundle != route.bundle => Swap::Changed(route.bundle.clone()),
            Some(_) => return None,
        };
        Some((route.workflow.clone(), swap))
    });
    let went = before.iter().filter(|route| find(after, &route.workflow).is_none());
    came.chain(went.map(|route| (route.workflow.clone(), Swap::Removed))).collect()
}

fn twice(name: &str, other: &str) -> Diagnostic {
    Diagnostic::new(
        "script::duplicate_workflow",
        format!("the workflow `{name}` is declared in {other} as well"),
    )
    .help("names are used in paths and on the command line; rename one of them")
}
