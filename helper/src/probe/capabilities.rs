//! What rights a command has, and whether it can take more.

use super::attempt::{refused, status, words};
use super::{Asked, Held, Probe};
use crate::sys::probe as sys;

pub(super) const PROBES: &[Probe] = &[
    Probe::new(
        "capabilities/none",
        "Commands hold no part of root's power, and no program can get one.",
        none,
    ),
    Probe::new("capabilities/take", "No command can give itself a capability.", take),
    Probe::new("capabilities/keep", "No capability can be kept for the next program.", keep),
    Probe::new(
        "capabilities/no-new-privileges",
        "No program a command starts has more rights than the command.",
        no_new,
    ),
    Probe::new(
        "capabilities/seccomp",
        "A filter stands between commands and the kernel's rarer calls.",
        seccomp,
    ),
];

fn none(_: &Asked) -> Held {
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        let bits = status(set)?;
        if bits.chars().any(|digit| digit != '0') {
            return Err(format!("{set} is {bits}"));
        }
    }
    Ok("all five sets are empty".to_owned())
}

fn take(_: &Asked) -> Held {
    refused(sys::take_capabilities())
}

fn keep(_: &Asked) -> Held {
    refused(sys::keep_capability())
}

fn no_new(_: &Asked) -> Held {
    let undone = match sys::allow_privileges() {
        Ok(_) => return Err("it could be undone".to_owned()),
        Err(error) => words(&error),
    };
    match status("NoNewPrivs")?.as_str() {
        "1" => Ok(format!("set, and undoing it: {undone}")),
        other => Err(format!("it is {other}")),
    }
}

fn seccomp(_: &Asked) -> Held {
    match status("Seccomp")?.as_str() {
        "2" => Ok("filtered".to_owned()),
        other => Err(format!("the mode is {other}, not 2")),
    }
}
