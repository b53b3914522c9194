//! What is checked before something happens.

use crate::event::verdict::Stage;
use crate::workflow::Hook;

/// One guardrail of a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guardrail {
    /// `guard.input_size { max }`: the dropped file in bytes.
    InputSize {
        /// Largest size allowed, in bytes.
        max: u64,
    },
    /// `guard.commands { deny, ask, allow }`: every simple command of every shell call, also in pipes, lists,
    /// substitutions and under `sh -c`. The strictest rule that matches counts. With `allow`, what no rule
    /// matches is denied.
    Commands {
        /// Patterns that are refused, e.g. `curl *`.
        deny: Vec<String>,
        /// Patterns a person must agree to.
        ask: Vec<String>,
        /// Patterns that may run; empty means everything not denied.
        allow: Vec<String>,
    },
    /// A function of the script.
    Hook {
        /// Before what it is asked.
        on: Stage,
        /// Its name in logs.
        name: String,
        /// The function.
        hook: Hook,
    },
}
