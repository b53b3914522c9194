//! All that a process has started, however it tries to get away.

use std::collections::BTreeSet;
use std::fs;

use crate::sys::{send_signal, signal_number};

/// Passes over a tree that grows while it is stopped. Each pass stops what the one before missed, and what stands
/// still takes up the process limit, so a fork bomb runs out of room.
const PASSES: usize = 200;

/// Every process below `root`, which adopts its orphans.
pub fn descendants(root: i32) -> Vec<i32> {
    let parents: Vec<(i32, i32)> = processes();
    let mut found = vec![root];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found.remove(0);
    found
}

/// Kills every process below `root`, `root` itself excepted.
pub fn kill(root: i32) {
    // Stopped first: what stands still cannot fork while the others are looked for.
    let mut stopped = BTreeSet::new();
    for _ in 0..PASSES {
        let fresh: Vec<i32> = descendants(root).into_iter().filter(|pid| stopped.insert(*pid)).collect();
        if fresh.is_empty() {
            break;
        }
        signal_each(&fresh, signal_number::STOP);
    }
    signal_each(&stopped.into_iter().collect::<Vec<_>>(), signal_number::KILL);
}

/// Sends `number` to every process below `root`.
pub fn signal(root: i32, number: i32) {
    signal_each(&descendants(root), number);
}

fn signal_each(pids: &[i32], number: i32) {
    for pid in pids {
        // One that has ended meanwhile needs no signal.
        let _ = send_signal(*pid, number);
    }
}

/// Process and parent of all processes.
fn processes() -> Vec<(i32, i32)> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            // A process's name is its own choice and may hold anything; the last bracket ends it.
            let stat = fs::read(entry.path().join("stat")).ok()?;
            let end = stat.iter().rposition(|byte| *byte == b')')?;
            let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
            Some((pid, rest.split_whitespace().nth(1)?.parse().ok()?))
        })
        .collect()
}
