//! Carrying probes out: each in a process of its own, with a deadline, so that none takes the others with it.

use std::io::{Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use super::attempt::words;
use super::{Asked, Death, Held, Probe};

/// One probe takes no longer.
const DEADLINE: Duration = Duration::from_secs(30);
/// Killed by seccomp.
const BAD_CALL: i32 = 31;
/// Killed for good.
const KILLED: i32 = 9;

/// Prints `name TAB passed|failed TAB detail TAB meaning` for each probe and `end TAB count` after the last.
pub(super) fn all(arguments: &[String]) -> ExitCode {
    let probes = super::all();
    let mut failed = false;
    for probe in &probes {
        let held = in_a_process(probe, arguments);
        failed |= held.is_err();
        let (verdict, detail) = match &held {
            Ok(detail) => ("passed", detail),
            Err(detail) => ("failed", detail),
        };
        say(&format!("{}\t{verdict}\t{}\t{}", probe.name, clean(detail), probe.meaning));
    }
    say(&format!("end\t{}", probes.len()));
    ExitCode::from(u8::from(failed))
}

/// Carries out one probe here and prints `passed TAB detail` or `failed TAB detail`.
pub(super) fn one(name: &str, asked: &Asked) -> ExitCode {
    let Some(probe) = super::all().into_iter().find(|probe| probe.name == name) else {
        return ExitCode::from(2);
    };
    match (probe.attack)(asked) {
        Ok(detail) => say(&format!("passed\t{detail}")),
        Err(detail) => say(&format!("failed\t{detail}")),
    }
    ExitCode::SUCCESS
}

fn in_a_process(probe: &Probe, arguments: &[String]) -> Held {
    let mut command = Command::new("/proc/self/exe");
    command.arg("probe").args(arguments).arg(format!("one={}", probe.name));
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let child = child.map_err(|error| format!("the probe could not be started: {}", words(&error)))?;
    let (said, status) = finish(child)?;
    match said.split_once('\t') {
        Some(("passed", detail)) => Ok(detail.trim().to_owned()),
        Some((_, detail)) => Err(detail.trim().to_owned()),
        None => match status.signal() {
            Some(BAD_CALL) => Ok("the attacker was killed for the call".to_owned()),
            Some(KILLED) if probe.death == Death::Wanted => {
                Ok("the attacker was killed, and nobody else".to_owned())
            }
            _ => Err(format!("the attacker ended without an answer: {status}")),
        },
    }
}

/// What the child printed and how it ended.
fn finish(mut child: Child) -> Result<(String, std::process::ExitStatus), String> {
    let (sender, receiver) = mpsc::channel();
    let output = child.stdout.take();
    let reading = std::thread::Builder::new().spawn(move || {
        let mut said = String::new();
        if let Some(mut output) = output {
            // What could not be read is an answer that was not given.
            let _ = output.read_to_string(&mut said);
        }
        // When nobody listens any more, the deadline has passed.
        let _ = sender.send(said);
    });
    let said = match reading {
        Ok(_) => receiver.recv_timeout(DEADLINE).ok(),
        Err(_) => None,
    };
    if said.is_none() {
        // One that has ended by now need not be killed.
        let _ = child.kill();
    }
    let status = child.wait().map_err(|error| words(&error))?;
    match said {
        Some(said) => Ok((said, status)),
        None => Err(format!("no answer within {} seconds", DEADLINE.as_secs())),
    }
}

/// A detail is one field of one line, whatever stands in it.
fn clean(detail: &str) -> String {
    detail.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // Whoever does not listen does not want the answer.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
