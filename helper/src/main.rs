//! The helper: `helper init` is a container's first process.

use std::process::ExitCode;

/// The arguments were wrong: nobody but Tidemill starts this program.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let part = std::env::args().nth(1);
    let done = match part.as_deref() {
        Some("init") => tidemill_helper::init::run(),
        _ => return ExitCode::from(USAGE),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
