//! The helper: `helper init` is a sandbox's first process, `helper launch` starts one on this machine.

use std::process::ExitCode;

/// The arguments were wrong: nobody but Tidemill starts this program.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let part = std::env::args().nth(1);
    let done = match part.as_deref() {
        Some("init") => tidemill_helper::init::run(),
        Some("launch") => tidemill_helper::launch::run(),
        _ => return ExitCode::from(USAGE),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
