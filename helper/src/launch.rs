//! Starting a program only when it is told to: by then whoever started this process has set its limits.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::sys;

/// The byte that says: go.
pub const GO: u8 = b'!';

/// Reads one byte, then becomes the program that the arguments name. What follows that byte is the program's input.
pub fn run() -> io::Result<()> {
    // Unbuffered: not a byte more may be taken.
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut byte = [0];
    input.read_exact(&mut byte)?;
    drop(input);
    // What this process was left open by mistake is not for a sandbox.
    sys::close_others(io::stderr().as_fd());
    let mut arguments = std::env::args_os().skip(2);
    let program = arguments.next().ok_or(io::ErrorKind::InvalidInput)?;
    Err(Command::new(program).args(arguments).exec())
}
