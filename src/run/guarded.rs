//! The guardrails of a run: built-in ones and functions of its script, in the order they were declared.

use std::sync::Arc;

use crate::agent::Journal as _;
use crate::diagnostic::Result;
use crate::event::What;
use crate::event::verdict::Stage;
use crate::guard::{self, Outcome, Pipeline, Subject};
use crate::run::journal::Journal;
use crate::script::Loaded;
use crate::workflow::guardrail::Guardrail;
use crate::workflow::view::RunView;

/// The workflow's pipeline.
pub fn pipeline(loaded: &Loaded, run: &Arc<RunView>) -> Pipeline {
    let guards = loaded.workflow.guardrails.iter().filter_map(|guardrail| match guardrail {
        Guardrail::Hook { on, name, hook } => Some(loaded.script.guard(*on, name, *hook, run.clone())),
        built_in => guard::built_in(built_in),
    });
    Pipeline::new(guards.collect())
}

/// Asks the guards before something happens and records every verdict.
pub async fn judge(pipeline: &Pipeline, subject: Subject<'_>, journal: &Journal) -> Result<Outcome> {
    let stage: Stage = subject.stage();
    let judgement = pipeline.judge(subject).await;
    for (guard, verdict) in judgement.verdicts {
        journal.append(What::GuardrailChecked { stage, guard, verdict }).await?;
    }
    match judgement.broken {
        Some(diagnostic) => Err(diagnostic),
        None => Ok(judgement.outcome),
    }
}
