//! The helper: `helper init` is a sandbox's first process, `helper launch` starts one on this machine, `helper gateway` is
//! the way out of one, and `helper probe` attacks the one it is in.

use std::process::ExitCode;

/// The arguments were wrong: nobody but Tidemill starts this program.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let words = std::env::args_os().skip(1);
    let arguments: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let done = match arguments.first().map(String::as_str) {
        Some("init") => tidemill_helper::init::run(),
        Some("launch") => tidemill_helper::launch::run(),
        Some("gateway") => return tidemill_helper::gateway::run(),
        #[cfg(target_os = "linux")]
        Some("probe") => return tidemill_helper::probe::main(&arguments[1..]),
        _ => return ExitCode::from(USAGE),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
