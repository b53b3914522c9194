//! `helper probe`: attacks the container it runs in, and says what held.
//!
//! Every probe really tries. None could harm the machine if it succeeded: what would grow is bounded, and what would
//! change something is asked for in a form that changes nothing.

pub mod asked;
mod attempt;
mod capabilities;
mod devices;
mod disk;
mod filesystem;
mod identity;
mod kernel;
mod limits;
mod mounts;
mod namespaces;
mod network;
mod processes;
mod procfs;
mod run;
mod secrets;
mod sysfs;

use std::process::ExitCode;

use asked::Asked;

/// One attack.
#[derive(Debug, Clone, Copy)]
pub struct Probe {
    /// Its name: `family/attack`.
    pub name: &'static str,
    /// What it means when it holds, in one sentence.
    pub meaning: &'static str,
    /// Attacks. What stopped it, or what it got.
    attack: fn(&Asked) -> Held,
    /// Whether the kernel killing the attacker is what should happen.
    death: Death,
}

/// What stopped an attack, or what the attack got.
pub type Held = Result<String, String>;

/// What it means that the attacker was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Death {
    /// Something went wrong.
    Unexpected,
    /// The limit works.
    Wanted,
}

impl Probe {
    const fn new(name: &'static str, meaning: &'static str, attack: fn(&Asked) -> Held) -> Self {
        Self { name, meaning, attack, death: Death::Unexpected }
    }
}

/// Every probe, the gentle ones first.
pub fn all() -> Vec<Probe> {
    [
        identity::PROBES,
        capabilities::PROBES,
        namespaces::PROBES,
        filesystem::PROBES,
        mounts::PROBES,
        devices::PROBES,
        procfs::PROBES,
        sysfs::PROBES,
        kernel::PROBES,
        network::PROBES,
        secrets::PROBES,
        processes::PROBES,
        limits::PROBES,
        disk::PROBES,
    ]
    .concat()
}

/// Carries out all probes, or with `one=NAME` that one in this very process. The rest of `arguments` says how the
/// container is meant to be; see [`Asked`].
pub fn main(arguments: &[String]) -> ExitCode {
    let asked = Asked::parse(arguments);
    match &asked.one {
        Some(name) => run::one(name, &asked),
        None => run::all(arguments),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_meanings_are_sentences() {
        let probes = all();
        let mut names: Vec<_> = probes.iter().map(|probe| probe.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), probes.len());
        assert!(probes.len() >= 60, "{}", probes.len());
        for probe in probes {
            assert!(probe.name.contains('/') && probe.meaning.ends_with('.'), "{}", probe.name);
            assert!(!probe.meaning.contains('\t') && !probe.meaning.contains('|'), "{}", probe.name);
        }
    }
}
