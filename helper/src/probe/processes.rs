//! Other processes, and too many of them.

use std::io;
use std::time::Duration;

use super::attempt::{all_refused, words};
use super::{Asked, Held, Probe, namespaces};
use crate::sys::probe as sys;

pub(super) const PROBES: &[Probe] = &[
    Probe::new("processes/debug", "The first process cannot be debugged or its memory read.", debug),
    Probe::new("processes/signal", "The first process cannot be ended by a command.", signal),
    Probe::new(
        "processes/priority",
        "A command cannot push itself before the machine's other work.",
        priority,
    ),
    Probe::new(
        "processes/fork-bomb",
        "A fork bomb ends at the limit, and there is room again when it is gone.",
        fork_bomb,
    ),
];

fn debug(_: &Asked) -> Held {
    all_refused([("ptrace", sys::seize(1)), ("process_vm_readv", sys::read_memory(1))])
}

/// Whether the first process is another user's or only deaf to it: it lives.
fn signal(_: &Asked) -> Held {
    // The machine's own first process may listen, and must not be ended to show that it could be.
    if !namespaces::is_own("pid") {
        return Err("it is the machine's".to_owned());
    }
    let sent = [TERMINATE, KILL].map(|number| sys::signal(1, number));
    // Had it ended, this process would have ended with it.
    match sent.into_iter().find_map(Result::err) {
        Some(error) => Ok(words(&error)),
        None if std::path::Path::new("/proc/1").exists() => Ok("it does not listen".to_owned()),
        None => Err("it is gone".to_owned()),
    }
}

fn priority(_: &Asked) -> Held {
    all_refused([("real time", sys::run_in_real_time()), ("nice", sys::raise_priority())])
}

/// A little more than the limit, so that a limit that does not work costs the machine a little and no more.
const BEYOND: u64 = 64;
/// "Try again": the limit.
const LIMIT: i32 = 11;
/// Asks a process to end.
const TERMINATE: usize = 15;
/// Ends a process.
const KILL: usize = 9;

fn fork_bomb(asked: &Asked) -> Held {
    let mut copies = Vec::new();
    let mut end = None;
    for _ in 0..asked.pids + BEYOND {
        match sys::copy_process() {
            Ok(Some(id)) => copies.push(id),
            Ok(None) => loop {
                std::thread::sleep(Duration::from_mins(1));
            },
            Err(error) => {
                end = Some(error);
                break;
            }
        }
    }
    for id in &copies {
        // One that is gone already need not be ended.
        let _ = sys::signal(*id, KILL);
    }
    for id in &copies {
        // The same.
        let _ = sys::reap(*id);
    }
    judge(copies.len(), end)
}

fn judge(copies: usize, end: Option<io::Error>) -> Held {
    let Some(error) = end else {
        return Err(format!("{copies} processes, and no end"));
    };
    if error.raw_os_error() != Some(LIMIT) {
        return Err(format!("after {copies} processes: {}", words(&error)));
    }
    match sys::copy_process() {
        Ok(Some(id)) => {
            // It sleeps and has nothing to lose.
            let _ = sys::signal(id, KILL).and_then(|_| sys::reap(id));
            Ok(format!("it ended at {copies} processes"))
        }
        Ok(None) => loop {
            std::thread::sleep(Duration::from_mins(1));
        },
        Err(error) => Err(format!("no room was left after it: {}", words(&error))),
    }
}
