//! The helper: `helper init` is a container's first process.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(2)
}
