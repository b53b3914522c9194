//! Files that stood in the inbox before anybody watched.
//!
//! What the first look shows and nobody knew was dropped while nobody watched. A drop may have it left, always
//! (`ignore`) or when its workflow was never watched before (`since_last_run`); a change of the file makes it a new one.

use std::collections::HashSet;

use crate::event::input::{InputChange, RawPath};
use crate::event::state::InputState;
use crate::trigger::drop_folder::judge::Judged;
use crate::trigger::drop_folder::routes::Route;
use crate::trigger::drop_folder::scan::Found;
use crate::workflow::trigger;

/// The rule's name in reasons.
const RULE: &str = "(rule `existing`)";

/// What stood there.
#[derive(Debug, Default)]
pub(super) struct Existing {
    /// Whether everything was looked at once.
    begun: bool,
    /// Workflows that were watched before.
    watched: HashSet<String>,
    /// Files that stood there at the first look, until they change.
    stood: HashSet<RawPath>,
    /// Files that were left for that reason before, until they change.
    left: HashSet<RawPath>,
}

impl Existing {
    pub(super) fn watched(&mut self, workflows: impl IntoIterator<Item = String>) {
        self.watched.extend(workflows);
    }

    /// Everything was looked at: what is new from now on was dropped while we watch.
    pub(super) fn begun(&mut self) {
        self.begun = true;
    }

    /// What the ledger knows: it may have been left by this rule before.
    pub(super) fn remember(&mut self, change: &InputChange) {
        let by_rule = change.reason.as_deref().is_some_and(|reason| reason.ends_with(RULE));
        if change.state == InputState::Ignored && by_rule {
            self.left.insert(change.path.clone());
        }
    }

    /// Leaves out the drops that pass over what stood there.
    pub(super) fn judge(&mut self, found: &Found, judged: Judged, is_same: bool, is_new: bool) -> Judged {
        if is_new && !self.begun {
            self.stood.insert(found.path.clone());
        } else if !is_same {
            self.stood.remove(&found.path);
            self.left.remove(&found.path);
        }
        let Judged::Input(takers) = judged else {
            return judged;
        };
        let (left, takers): (Vec<_>, Vec<_>) =
            takers.into_iter().partition(|route| self.passes_over(route, &found.path));
        match left.first() {
            Some(route) if takers.is_empty() => Judged::Left(InputState::Ignored, reason(route)),
            _ => Judged::Input(takers),
        }
    }

    fn passes_over(&self, route: &Route, path: &RawPath) -> bool {
        let stood = self.stood.contains(path);
        let left = self.left.contains(path);
        match route.drop.existing {
            trigger::Existing::Process => false,
            trigger::Existing::Ignore => stood || left,
            trigger::Existing::SinceLastRun => left || (stood && !self.watched.contains(&route.workflow)),
        }
    }
}

fn reason(route: &Route) -> String {
    let word = route.drop.existing.as_str();
    format!(
        "it stood there before it was watched for, `existing = \"{word}\"` of {}, until it changes {RULE}",
        route.workflow
    )
}
