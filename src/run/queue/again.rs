//! Failures that pass: which they are, how often a run is tried again, and when.

use std::time::Duration;

use crate::diagnostic::Diagnostic;
use crate::event::id::RunId;
use crate::run::pause::passes;

/// Tries of a run in all, when what fails is somebody else's service.
pub(super) const TRIES: u32 = 3;
/// The first wait; each further one is twice as long.
const FIRST: Duration = Duration::from_secs(30);
/// The longest.
const LONGEST: Duration = Duration::from_secs(10 * 60);

/// Why another try may go better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passing {
    /// Nothing has begun that could not begin on this machine now: as often as it takes.
    Machine,
    /// A service broke off or had too much to do: so many times.
    Service,
}

/// Why another try may go better; nothing when it would end the same way.
pub(super) fn passing(error: &Diagnostic) -> Option<Passing> {
    const SERVICES: [&str; 10] = [
        "model::cut_stream",
        "model::overloaded",
        "model::rate_limited",
        "model::server_error",
        "model::stalled",
        "model::unreachable",
        "sandbox::busy",
        "sandbox::engine_gone",
        "sandbox::no_answer",
        "sandbox::unsteady",
    ];
    match error.code() {
        "sandbox::no_engine" => Some(Passing::Machine),
        _ if passes(error) => Some(Passing::Machine),
        code if SERVICES.contains(&code) => Some(Passing::Service),
        _ => None,
    }
}

/// Whether a run that failed so is the queue's to try again.
pub(crate) fn may_pass(error: &Diagnostic) -> bool {
    passing(error).is_some()
}

/// How long a run waits after so many failures. Runs that failed together do not come back together: each waits up to a
/// fifth longer, always by the same part.
pub(super) fn wait(run: &RunId, failures: u32) -> Duration {
    let doubled = FIRST.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1)));
    let sum: u32 = run.as_str().bytes().map(u32::from).sum();
    let wait = doubled.min(LONGEST);
    wait + wait / 5 * (sum % 101) / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_longest_and_differ_from_run_to_run() {
        let run = |end: &str| RunId::parse(&format!("20261130-230000-{end}")).expect("an id");
        for (failures, least) in [(1, 30), (2, 60), (3, 120), (6, 600), (60, 600)] {
            let waits = ["aaaa", "aaab", "zzzz"].map(|end| wait(&run(end), failures));
            for wait in waits {
                assert!(wait.as_secs() >= least && wait.as_secs() <= least * 6 / 5, "{failures}: {wait:?}");
            }
            assert!(waits[0] != waits[1] && waits[1] != waits[2], "{waits:?}");
            assert_eq!(wait(&run("aaaa"), failures), waits[0]);
        }
    }

    #[test]
    fn only_what_may_go_better_is_tried_again() {
        let kind = |code| passing(&Diagnostic::new(code, "x"));
        assert_eq!(kind("sandbox::no_engine"), Some(Passing::Machine));
        assert_eq!(kind("store::disk_full"), Some(Passing::Machine));
        assert_eq!(kind("model::overloaded"), Some(Passing::Service));
        for code in
            ["model::bad_key", "model::quota", "image::build_failed", "script::runtime", "run::broken"]
        {
            assert_eq!(kind(code), None, "{code}");
        }
    }
}
