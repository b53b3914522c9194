//! Failures that pass: which they are, how often a run is tried again, and when.

use std::time::Duration;

use jiff::Timestamp;

use crate::diagnostic::Diagnostic;
use crate::event::again::Again;
use crate::event::id::RunId;
use crate::run::pause::passes;
use crate::workflow::queueing::Retry;

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

/// When and why a run is tried again that failed once more; nothing when it was tried often enough.
pub(super) fn again(
    run: &RunId,
    before: Option<&Again>,
    kind: Passing,
    retry: &Retry,
    why: &Diagnostic,
    now: Timestamp,
) -> Option<Again> {
    let failures = before.map_or(0, |again| again.failures).saturating_add(1);
    let counts = u32::from(kind == Passing::Service);
    let counted = before.map_or(0, |again| again.counted) + counts;
    if kind == Passing::Service && counted >= retry.attempts {
        return None;
    }
    let at = now.checked_add(wait(run, failures, retry)).unwrap_or(now);
    let of = (kind == Passing::Service).then_some(retry.attempts);
    Some(Again { at, failures, counted, of, why: why.report() })
}

/// How long a run waits after so many failures. Runs that failed together do not come back together: each waits up to a
/// fifth longer, always by the same part.
fn wait(run: &RunId, failures: u32, retry: &Retry) -> Duration {
    let doubled = retry.backoff.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1)));
    let sum: u32 = run.as_str().bytes().map(u32::from).sum();
    let wait = doubled.min(retry.max_backoff);
    wait + wait / 5 * (sum % 101) / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_longest_and_differ_from_run_to_run() {
        let run = |end: &str| RunId::parse(&format!("20261130-230000-{end}")).expect("an id");
        for (failures, least) in [(1, 30), (2, 60), (3, 120), (6, 600), (60, 600)] {
            let waits = ["aaaa", "aaab", "zzzz"].map(|end| wait(&run(end), failures, &Retry::default()));
            for wait in waits {
                assert!(wait.as_secs() >= least && wait.as_secs() <= least * 6 / 5, "{failures}: {wait:?}");
            }
            assert!(waits[0] != waits[1] && waits[1] != waits[2], "{waits:?}");
            assert_eq!(wait(&run("aaaa"), failures, &Retry::default()), waits[0]);
        }
    }

    #[test]
    fn a_service_has_so_many_tries_and_the_machine_as_many_as_it_takes() {
        let run = RunId::parse("20261130-230000-aaaa").expect("an id");
        let now: Timestamp = "2026-11-30T23:00:00Z".parse().expect("a time");
        let retry =
            Retry { attempts: 3, backoff: Duration::from_secs(10), max_backoff: Duration::from_secs(15) };
        let why = Diagnostic::new("model::overloaded", "it has too much to do");
        let next = |before: Option<&Again>, kind| again(&run, before, kind, &retry, &why, now);
        let first = next(None, Passing::Service).expect("a second try");
        assert!(first.to_string().ends_with(" (2 of 3): it has too much to do"), "{first}");
        let second = next(Some(&first), Passing::Machine).expect("the machine's failures do not count");
        assert_eq!((second.failures, second.counted, second.of), (2, 1, None));
        assert!((15..=18).contains(&second.at.duration_since(now).as_secs()), "{second}");
        let third = next(Some(&second), Passing::Service).expect("a third try");
        assert!(third.to_string().contains("(3 of 3)"), "{third}");
        assert_eq!(next(Some(&third), Passing::Service), None);
        let tireless = (0..50).try_fold(third, |before, _| next(Some(&before), Passing::Machine));
        assert_eq!(tireless.expect("as often as it takes").counted, 2);
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
