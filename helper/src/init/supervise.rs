//! One process beside each command: it adopts what the command leaves, and ends when nothing is left.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{PipeReader, PipeWriter, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::fields::{Fields, Malformed, Reader};
use crate::init::tree;
use crate::message::{How, KEY_VARIABLE, Start};
use crate::sys::{self, Disposition, Patience, Waited, errno, signal_number};

/// Bytes of a reason: with them a verdict goes through a pipe in one piece.
const LONGEST_REASON: usize = 500;
/// What is left is looked at again after this while.
const PAUSE: Duration = Duration::from_micros(500);

/// The command's ends of its input and output.
pub enum Ends {
    /// Input, output, errors.
    Pipes(PipeReader, PipeWriter, PipeWriter),
    /// The inner side of a terminal.
    Terminal(File),
}

impl Ends {
    fn all(&self) -> [BorrowedFd<'_>; 3] {
        match self {
            Self::Pipes(input, output, errors) => [input.as_fd(), output.as_fd(), errors.as_fd()],
            Self::Terminal(inner) => [inner.as_fd(); 3],
        }
    }
}

/// What a supervisor says at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// How the command ended.
    pub how: How,
    /// Why it never started.
    pub reason: String,
}

impl Verdict {
    fn encode(&self) -> Vec<u8> {
        let (tag, code) = match self.how {
            How::Exited(code) => (0, code),
            How::Signalled(signal) => (1, signal),
            How::NotStarted(errno) => (2, errno),
            How::TimedOut => (3, 0),
        };
        let mut fields = Fields::default();
        let reason = self.reason.as_bytes();
        fields.u8(tag).i32(code).rest(&reason[..reason.len().min(LONGEST_REASON)]);
        fields.done()
    }

    /// Of the bytes of a supervisor's pipe.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let how = match (reader.u8()?, reader.i32()?) {
            (0, code) => How::Exited(code),
            (1, signal) => How::Signalled(signal),
            (2, errno) => How::NotStarted(errno),
            _ => return Err(Malformed),
        };
        Ok(Self { how, reason: String::from_utf8_lossy(reader.rest()).into_owned() })
    }
}

/// Runs the command to its end and kills all it leaves. For a process of its own, which ends here.
pub fn supervise(start: &Start, ends: &Ends, mut status: PipeWriter) -> ! {
    let verdict = run(start, ends, &status);
    // The first process reads a pipe without a verdict as an attack on this one.
    let code = i32::from(status.write_all(&verdict.encode()).is_err());
    sys::exit_now(code)
}

fn run(start: &Start, ends: &Ends, status: &PipeWriter) -> Verdict {
    match begin(start, ends, status) {
        Ok(main) => {
            let how = wait_for(main);
            clear();
            Verdict { how, reason: String::new() }
        }
        Err(error) => not_started(start, &error),
    }
}

fn begin(start: &Start, ends: &Ends, status: &PipeWriter) -> std::io::Result<i32> {
    for (fd, end) in (0..).zip(ends.all()) {
        sys::put_at(end, fd)?;
    }
    sys::close_others(status.as_fd());
    sys::set_signal(signal_number::CHILD, Disposition::Default);
    sys::adopt_orphans()?;
    let (program, arguments) = start.argv.split_first().ok_or(std::io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(OsStr::from_bytes(program));
    command
        .args(arguments.iter().map(|argument| OsStr::from_bytes(argument)))
        .env_remove(KEY_VARIABLE)
        .envs(
            start.environment.iter().map(|(name, value)| (OsStr::from_bytes(name), OsStr::from_bytes(value))),
        )
        .current_dir(OsStr::from_bytes(&start.folder));
    let terminal = matches!(ends, Ends::Terminal(_)).then_some(0);
    let child = sys::spawn(&mut command, terminal)?;
    // While this process held its ends of the pipes as well, nobody would see them close.
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        for fd in 0..3 {
            sys::put_at(null.as_fd(), fd)?;
        }
    }
    Ok(i32::try_from(child.id()).unwrap_or(0))
}

fn not_started(start: &Start, error: &std::io::Error) -> Verdict {
    let number = error.raw_os_error().unwrap_or_default();
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let program = start.argv.first().map(|program| shown(program)).unwrap_or_default();
    let reason = match number {
        errno::ENOENT if !Path::new(OsStr::from_bytes(&start.folder)).is_dir() => {
            format!("the folder {} does not exist", shown(&start.folder))
        }
        errno::ENOENT => format!("{program}: not found"),
        errno::EACCES => format!("{program}: cannot be run: permission denied"),
        _ => format!("{program}: cannot be run: {error}"),
    };
    Verdict { how: How::NotStarted(number), reason }
}

fn wait_for(main: i32) -> How {
    loop {
        match sys::reap(Patience::Forever) {
            Waited::Ended(reaped) if reaped.pid == main => {
                return reaped.code.map_or(How::Signalled(reaped.signal), How::Exited);
            }
            Waited::Ended(_) | Waited::Living => {}
            Waited::Childless => return How::Signalled(signal_number::KILL),
        }
    }
}

/// Kills what the command has left, until nothing is.
fn clear() {
    let this = i32::try_from(std::process::id()).unwrap_or(0);
    loop {
        match sys::reap(Patience::None) {
            Waited::Ended(_) => {}
            Waited::Childless => return,
            Waited::Living => {
                tree::kill(this);
                std::thread::sleep(PAUSE);
            }
        }
    }
}
