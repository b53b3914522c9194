//! The helper: `helper init` is a container's first process, `helper gateway` the way out of a sandbox.

use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("gateway") => tidemill_helper::gateway::run(),
        _ => ExitCode::from(2),
    }
}
