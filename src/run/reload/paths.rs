//! Paths of webhooks that two workflows claim.

use crate::diagnostic::Diagnostic;
use crate::run::intake::WorkflowRoute;

/// A workflow that claims a path of another one, and what is wrong with that. The one that has the path keeps it; else the
/// first. `before` is what is in force, `now` what would be, each with its script.
pub(super) fn contested(
    before: &[WorkflowRoute],
    now: &[(&str, &WorkflowRoute)],
) -> Option<(String, Diagnostic)> {
    now.iter().enumerate().find_map(|(at, (file, route))| {
        now[at + 1..].iter().find_map(|(other_file, other)| {
            let path = paths(route).find(|path| paths(other).any(|known| known == *path))?;
            let has = |route: &WorkflowRoute| {
                before
                    .iter()
                    .any(|known| known.workflow == route.workflow && paths(known).any(|known| known == path))
            };
            let (loser, winner) = if has(other) && !has(route) { (route, other_file) } else { (other, file) };
            let message = format!("a webhook of {winner} has the path `{path}` as well");
            let why = Diagnostic::new("script::duplicate_webhook", message)
                .help("a path leads to one workflow; give one of them another");
            Some((loser.workflow.clone(), why))
        })
    })
}

fn paths(route: &WorkflowRoute) -> impl Iterator<Item = &str> {
    route.webhooks.iter().map(|webhook| webhook.path.as_str())
}
