//! Which of the runs that wait begin next.

use std::collections::BTreeMap;

use crate::event::id::RunId;
use crate::store::Waiting;
use crate::workflow::queueing::Queueing;

/// What a run in work takes up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InWork {
    /// Its workflow.
    pub(super) workflow: String,
    /// Its model.
    pub(super) model: String,
}

/// How many runs may be in work at once.
#[derive(Debug, Clone, Default)]
pub(super) struct Limits {
    /// In all.
    pub(super) total: usize,
    /// By workflow; one that is not named has no limit of its own, and the usual priority.
    pub(super) workflows: BTreeMap<String, Queueing>,
    /// By model.
    pub(super) models: BTreeMap<String, usize>,
}

impl Limits {
    fn queueing(&self, workflow: &str) -> Queueing {
        self.workflows.get(workflow).copied().unwrap_or_default()
    }
}

/// The runs that begin now, in this order: those of the highest priority first; among equals one of the workflow that
/// has the fewest in work; among these the one that waits longest. `waiting` stands in order of arrival.
pub(super) fn pick(waiting: &[Waiting], in_work: &[InWork], limits: &Limits) -> Vec<RunId> {
    let mut flows: BTreeMap<&str, usize> = BTreeMap::new();
    let mut models: BTreeMap<&str, usize> = BTreeMap::new();
    for run in in_work {
        *flows.entry(&run.workflow).or_default() += 1;
        *models.entry(&run.model).or_default() += 1;
    }
    let free = limits.total.saturating_sub(in_work.len());
    let mut left: Vec<&Waiting> = waiting.iter().collect();
    let mut picked = Vec::new();
    while picked.len() < free {
        let in_flow = |run: &Waiting| flows.get(run.workflow.as_str()).copied().unwrap_or(0);
        let in_model = |run: &Waiting| models.get(run.model.as_str()).copied().unwrap_or(0);
        let fits = |run: &Waiting| {
            let flow = limits.queueing(&run.workflow).concurrency;
            let model = limits.models.get(&run.model);
            flow.is_none_or(|most| in_flow(run) < most) && model.is_none_or(|most| in_model(run) < *most)
        };
        let rank = |run: &Waiting| {
            (std::cmp::Reverse(limits.queueing(&run.workflow).priority), in_flow(run), run.number)
        };
        let next = (0..left.len()).filter(|at| fits(left[*at])).min_by_key(|at| rank(left[*at]));
        let Some(next) = next else { break };
        let run = left.remove(next);
        *flows.entry(&run.workflow).or_default() += 1;
        *models.entry(&run.model).or_default() += 1;
        picked.push(run.id.clone());
    }
    picked
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a1 a2 b3`: runs of workflows `a` and `b`, in this order of arrival; `a1/m` uses the model `m`.
    fn waiting(words: &str) -> Vec<Waiting> {
        let runs = words.split_whitespace().enumerate().map(|(number, word)| {
            let (id, model) = word.split_once('/').unwrap_or((word, "other"));
            Waiting {
                id: RunId::parse(id).expect("an id"),
                workflow: id[..1].to_owned(),
                model: model.to_owned(),
                number: i64::try_from(number).expect("few"),
            }
        });
        runs.collect()
    }

    fn in_work(words: &str) -> Vec<InWork> {
        let run = |run: Waiting| InWork { workflow: run.workflow, model: run.model };
        waiting(words).into_iter().map(run).collect()
    }

    fn limits(total: usize, flows: &[(&str, i64, Option<usize>)], models: &[(&str, usize)]) -> Limits {
        let flow = |(name, priority, concurrency): &(&str, i64, Option<usize>)| {
            let queueing = Queueing { priority: *priority, concurrency: *concurrency, ..Queueing::default() };
            ((*name).to_owned(), queueing)
        };
        Limits {
            total,
            workflows: flows.iter().map(flow).collect(),
            models: models.iter().map(|(name, most)| ((*name).to_owned(), *most)).collect(),
        }
    }

    #[test]
    fn priority_first_then_fair_between_workflows_then_by_arrival() {
        let usual = |total| limits(total, &[], &[]);
        for (case, waits, works, limits, expected) in [
            ("nothing waits", "", "a9", usual(4), ""),
            ("no worker is free", "a1 b2", "c1 c2", usual(2), ""),
            ("more in work than there may be", "a1", "c1 c2 c3", usual(2), ""),
            ("one workflow by arrival", "a1 a2 a3", "", usual(2), "a1 a2"),
            ("turn by turn", "a1 a2 a3 b4 c5", "", usual(4), "a1 b4 c5 a2"),
            ("who has the fewest in work", "a1 a2 b3 b4", "a8 a9", usual(5), "b3 b4 a1"),
            ("among equals who waits longest", "b1 a2 b3 a4", "", usual(3), "b1 a2 b3"),
            ("priority beats fairness", "a1 b2 b3 b4", "b9", limits(4, &[("b", 1, None)], &[]), "b2 b3 b4"),
            ("a low priority comes last", "a1 b2", "", limits(1, &[("a", -1, None)], &[]), "b2"),
            ("a limit of a workflow", "a1 a2 b3", "a9", limits(4, &[("a", 0, Some(2))], &[]), "b3 a1"),
            ("it holds for the important too", "a1 a2 b3", "", limits(3, &[("a", 9, Some(1))], &[]), "a1 b3"),
            ("a limit of a model", "a1/m b2/m a3 b4", "", limits(4, &[], &[("m", 1)]), "a1 b4 a3"),
            ("a model that is busy", "a1/m b2", "c9/m", limits(4, &[], &[("m", 1)]), "b2"),
        ] {
            let picked = pick(&waiting(waits), &in_work(works), &limits);
            let picked: Vec<&str> = picked.iter().map(RunId::as_str).collect();
            assert_eq!(picked.join(" "), expected, "{case}");
        }
    }
}
