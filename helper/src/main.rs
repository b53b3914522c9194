//! The helper: `helper init` is a container's first process, `helper probe` attacks the container it is in.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    match arguments.split_first() {
        Some((what, rest)) if what == "probe" => tidemill_helper::probe::main(rest),
        _ => ExitCode::from(2),
    }
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    ExitCode::from(2)
}
