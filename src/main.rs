//! The `tidemill` command: parse, run, exit code.

use std::process::ExitCode;

use clap::Parser as _;
use tidemill::cli::Cli;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            tidemill::report::screen::Screen::new().talk(format!("cannot start: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let exit = runtime.block_on(cli.run());
    // A hook that ran out of time may still hold a thread; nothing waits for it.
    runtime.shutdown_background();
    ExitCode::from(exit.code())
}
