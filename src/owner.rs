//! Which process a container or a run belongs to, and whether that process still lives.

use std::fmt;
use std::fs;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::Digest;

/// A process: machine, boot, process id and its start time. A reused process id is not mistaken for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    machine: String,
    boot: String,
    pid: u32,
    start: u64,
}

/// Whether an owner lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It runs.
    Alive,
    /// It has ended.
    Dead,
    /// It is on another machine, or the label is not one of ours: not for us to judge.
    Unknown,
}

impl Owner {
    /// This process.
    pub fn this_process() -> Result<Self> {
        let pid = std::process::id();
        let start = start_of(pid).ok_or_else(|| {
            Diagnostic::new("owner::no_proc", "cannot read this process's start time from /proc")
                .help("Tidemill needs a mounted /proc to know which containers and runs are its own")
        })?;
        Ok(Self { machine: machine(), boot: boot(), pid, start })
    }

    /// Its process id, which means nothing on another machine.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Reads a label.
    pub fn parse(label: &str) -> Option<Self> {
        let mut parts = label.split('/');
        let (machine, boot) = (parts.next()?.to_owned(), parts.next()?.to_owned());
        let (pid, start) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        parts.next().is_none().then_some(Self { machine, boot, pid, start })
    }

    /// Whether it lives, as far as this machine can tell.
    pub fn life(&self) -> Life {
        if self.machine != machine() {
            Life::Unknown
        } else if self.boot != boot() {
            Life::Dead
        } else {
            match start_of(self.pid) {
                Some(start) if start == self.start => Life::Alive,
                // Another user's process may be hidden from us, and is there all the same.
                None if is_there(self.pid) => Life::Alive,
                _ => Life::Dead,
            }
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}/{}/{}", self.machine, self.boot, self.pid, self.start)
    }
}

fn machine() -> String {
    let id = fs::read_to_string("/etc/machine-id").ok().filter(|id| !id.trim().is_empty());
    let id = id.or_else(|| fs::read_to_string("/proc/sys/kernel/hostname").ok()).unwrap_or_default();
    // Process ids of another PID namespace mean nothing here, so to us it is another machine.
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    // The id is meant to stay on its machine, so only a hash of it goes into labels.
    Digest::of(format!("{} {}", id.trim(), namespace.display())).short().to_owned()
}

fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned()).unwrap_or_default()
}

fn is_there(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

/// The start time of a process in clock ticks since boot: field 22 of its stat, counted after the name in brackets.
fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_tells_the_living_from_the_dead() {
        let this = Owner::this_process().unwrap();
        assert_eq!(Owner::parse(&this.to_string()), Some(this.clone()));
        assert_eq!(this.life(), Life::Alive);
        assert_eq!(Owner { start: this.start + 1, ..this.clone() }.life(), Life::Dead, "a reused process id");
        assert_eq!(Owner { boot: "other".into(), ..this.clone() }.life(), Life::Dead, "before a reboot");
        assert_eq!(Owner { machine: "other".into(), ..this }.life(), Life::Unknown, "another machine");
        assert_eq!(Owner::parse("nonsense"), None);
    }
}
