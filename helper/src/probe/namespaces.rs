//! Other views of the machine: making them, and joining the host's.

use std::fs::{self, File};
use std::os::fd::AsRawFd as _;

use super::attempt::{refused, refused_or, words};
use super::{Asked, Held, Probe};
use crate::sys::probe as sys;

pub(super) const PROBES: &[Probe] = &[
    Probe::new(
        "namespaces/own",
        "Processes, shared memory and the machine's name are the container's own.",
        own,
    ),
    Probe::new(
        "namespaces/new-user",
        "A command cannot be root of a world of its own, where most kernel holes begin.",
        new_user,
    ),
    Probe::new("namespaces/new-mounts", "A command cannot have mounts of its own.", new_mounts),
    Probe::new("namespaces/new-network", "A command cannot have a network of its own.", new_network),
    Probe::new("namespaces/new-processes", "A command cannot hide processes.", new_processes),
    Probe::new("namespaces/join", "A command cannot step into the first process's view.", join),
];

/// The numbers the kernel gives to the machine's own.
const INITIAL: [(&str, &str); 3] =
    [("pid", "pid:[4026531836]"), ("uts", "uts:[4026531838]"), ("ipc", "ipc:[4026531839]")];

fn own(_: &Asked) -> Held {
    match INITIAL.into_iter().find(|(kind, _)| !is_own(kind)) {
        Some((kind, _)) => Err(format!("{kind} is the host's")),
        None => Ok("pid, uts and ipc".to_owned()),
    }
}

/// Whether a namespace is known and not the machine's.
pub(super) fn is_own(kind: &str) -> bool {
    let link = fs::read_link(format!("/proc/self/ns/{kind}"));
    link.is_ok_and(|link| !INITIAL.iter().any(|(_, initial)| link.as_os_str() == *initial))
}

fn new_user(_: &Asked) -> Held {
    /// As many namespaces as there may be, which is none (`ENOSPC`).
    const NONE_LEFT: i32 = 28;
    refused_or(sys::unshare(0x1000_0000), NONE_LEFT)
}

fn new_mounts(_: &Asked) -> Held {
    refused(sys::unshare(0x0002_0000))
}

fn new_network(_: &Asked) -> Held {
    refused(sys::unshare(0x4000_0000))
}

fn new_processes(_: &Asked) -> Held {
    refused(sys::unshare(0x2000_0000))
}

fn join(_: &Asked) -> Held {
    match File::open("/proc/1/ns/mnt") {
        Ok(file) => refused(sys::join_namespace(file.as_raw_fd())),
        Err(error) => Ok(words(&error)),
    }
}
