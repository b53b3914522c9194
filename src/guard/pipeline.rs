//! Every guard of a stage, one after the other; the first that says no ends it.

use std::time::Duration;

use serde_json::Value;

use crate::diagnostic::Diagnostic;
use crate::event::verdict::{Stage, Verdict};
use crate::guard::{Guard, Subject};

/// The guards of a run, in the order the script names them.
#[derive(Debug)]
pub struct Pipeline {
    guards: Vec<Box<dyn Guard>>,
    /// How long one guard may think.
    patience: Duration,
}

/// What the guards of a stage said together.
#[derive(Debug)]
pub struct Judgement {
    /// Every guard that was asked, by name, and its verdict. An error or a timeout stands here as a denial.
    pub verdicts: Vec<(String, Verdict)>,
    /// What follows from them.
    pub outcome: Outcome,
    /// Why a guard could not judge: a mistake in it, which ends the run whatever it was asked about.
    pub broken: Option<Diagnostic>,
}

/// What follows from the verdicts of a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Go on.
    Pass,
    /// Go on with this text instead: the prompt, the arguments as JSON, the output or the answer.
    Replaced(String),
    /// Stop.
    Denied {
        /// The guard that said so.
        guard: String,
        /// Why, for people and for the model.
        reason: String,
    },
}

impl Pipeline {
    /// A guard that thinks longer counts as broken: the built-in ones need milliseconds, and a script's function
    /// is stopped by its own limits after 21 s, which says better what went wrong.
    pub const GUARD_TIMEOUT: Duration = Duration::from_secs(30);

    /// A pipeline that asks `guards` in this order.
    pub fn new(guards: Vec<Box<dyn Guard>>) -> Self {
        Self { guards, patience: Self::GUARD_TIMEOUT }
    }

    /// Asks every guard that watches the subject's stage, in order.
    ///
    /// The first denial ends it, and so does a question, since nobody can answer one yet. What a guard puts in
    /// place is what the next guard sees. A guard that errors, takes longer than [`Pipeline::GUARD_TIMEOUT`] or
    /// puts something impossible in place denies, and the reason says so.
    pub async fn judge(&self, subject: Subject<'_>) -> Judgement {
        let stage = subject.stage();
        let mut verdicts = Vec::new();
        let mut current = Current::default();
        for guard in self.guards.iter().filter(|guard| guard.watches(stage)) {
            let (verdict, broken) = self.ask(guard.as_ref(), &current.subject(subject)).await;
            let verdict = current.take(stage, verdict);
            verdicts.push((guard.name().to_owned(), verdict.clone()));
            let reason = match verdict {
                Verdict::Pass | Verdict::Replace { .. } => continue,
                Verdict::Deny { reason } => reason,
                Verdict::Ask { reason } => {
                    format!("{reason}: needs a person's approval, and approvals do not exist yet")
                }
            };
            let guard = guard.name().to_owned();
            return Judgement { verdicts, outcome: Outcome::Denied { guard, reason }, broken };
        }
        let outcome = current.text.map_or(Outcome::Pass, Outcome::Replaced);
        Judgement { verdicts, outcome, broken: None }
    }

    /// One guard's verdict; whatever is not a verdict is a denial, with the error when there was one.
    async fn ask(&self, guard: &dyn Guard, subject: &Subject<'_>) -> (Verdict, Option<Diagnostic>) {
        match tokio::time::timeout(self.patience, guard.judge(subject)).await {
            Ok(Ok(verdict)) => (verdict, None),
            Ok(Err(error)) => {
                let reason = format!("the guardrail failed, which counts as a denial: {error}");
                (Verdict::Deny { reason }, Some(error))
            }
            Err(_) => {
                let seconds = self.patience.as_secs();
                let reason =
                    format!("the guardrail gave no verdict within {seconds} s, which counts as a denial");
                (Verdict::Deny { reason }, None)
            }
        }
    }
}

/// What the guards so far have put in place of the original.
#[derive(Debug, Default)]
struct Current {
    text: Option<String>,
    arguments: Option<Value>,
}

impl Current {
    /// The subject as the next guard sees it.
    fn subject<'a>(&'a self, original: Subject<'a>) -> Subject<'a> {
        match (original, &self.text, &self.arguments) {
            (Subject::ToolCall { tool, .. }, _, Some(arguments)) => Subject::ToolCall { tool, arguments },
            (Subject::Prompt { .. }, Some(text), _) => Subject::Prompt { text },
            (Subject::ToolOutput { tool, .. }, Some(output), _) => Subject::ToolOutput { tool, output },
            (Subject::Answer { .. }, Some(text), _) => Subject::Answer { text },
            (original, _, _) => original,
        }
    }

    /// Takes a verdict in; a replacement that cannot be used comes back as a denial.
    fn take(&mut self, stage: Stage, verdict: Verdict) -> Verdict {
        let Verdict::Replace { with, .. } = &verdict else {
            return verdict;
        };
        match stage {
            Stage::Input => {
                return Verdict::Deny {
                    reason:
                        "the guardrail wants to replace the input, which is not possible; it can pass, deny \
                             or ask"
                            .to_owned(),
                };
            }
            Stage::ToolCall => match serde_json::from_str::<Value>(with) {
                Ok(arguments @ Value::Object(_)) => self.arguments = Some(arguments),
                Ok(_) => {
                    return Verdict::Deny {
                        reason: "the guardrail replaced the tool's arguments with JSON that is not an object"
                            .to_owned(),
                    };
                }
                Err(error) => {
                    return Verdict::Deny {
                        reason: format!(
                            "the guardrail replaced the tool's arguments with text that is not JSON: {error}"
                        ),
                    };
                }
            },
            Stage::Prompt | Stage::ToolOutput | Stage::Answer => {}
        }
        self.text = Some(with.clone());
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_trait::async_trait;

    #[derive(Debug)]
    struct Hanging;

    #[async_trait]
    impl Guard for Hanging {
        fn name(&self) -> &'static str {
            "hanging"
        }

        fn watches(&self, _: Stage) -> bool {
            true
        }

        async fn judge(&self, _: &Subject<'_>) -> crate::diagnostic::Result<Verdict> {
            std::future::pending().await
        }
    }

    #[tokio::test]
    async fn a_guard_that_never_answers_denies() {
        let pipeline = Pipeline { guards: vec![Box::new(Hanging)], patience: Duration::ZERO };
        let judgement = pipeline.judge(Subject::Prompt { text: "x" }).await;
        let Outcome::Denied { guard, reason } = judgement.outcome else {
            panic!("a guard without a verdict passed");
        };
        assert_eq!(guard, "hanging");
        assert!(reason.contains("no verdict within 0 s"), "{reason}");
    }
}
