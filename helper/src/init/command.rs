//! A command as the first process sees it: a supervisor, pipes, what was printed, and its end.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, PipeReader, Read as _, Write as _, pipe};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::time::{Duration, Instant};

use crate::init::files::WORKSPACE;
use crate::init::kept::Kept;
use crate::init::supervise::{Ends, Verdict, supervise};
use crate::init::{memory, tree};
use crate::message::{Exit, How, Start, Stdio, Stream};
use crate::sys::{self, Forked, signal_number};

/// Bytes of input that wait for the command to read them.
const MOST_INPUT: usize = 16 << 20;
/// Bytes of a verdict, which a pipe takes and gives in one piece.
const VERDICT: usize = 1024;
/// Bytes read at once.
const PIECE: usize = 16 * 1024;
/// A tree that was killed is gone by then; if not, everything in the container is killed.
const KILL: Duration = Duration::from_secs(3);

/// The first process's end of one stream of output.
pub struct Source {
    stream: Stream,
    file: File,
}

/// A command that was started.
pub struct Running {
    supervisor: i32,
    input: Option<File>,
    terminal: Option<File>,
    waiting: VecDeque<u8>,
    close_input: bool,
    sources: Vec<Source>,
    status: Option<PipeReader>,
    said: Vec<u8>,
    deadline: Option<Instant>,
    killed: Option<Instant>,
    timed_out: bool,
    memory_kills: u32,
    /// What it printed.
    pub kept: Kept,
    /// How it ended.
    pub exit: Option<Exit>,
}

fn file(fd: impl Into<OwnedFd>) -> io::Result<File> {
    let fd = fd.into();
    sys::set_nonblocking(fd.as_fd())?;
    Ok(File::from(fd))
}

impl Running {
    /// Starts it.
    pub fn start(start: &Start) -> io::Result<Self> {
        // Where the folder is the commands' own, an earlier one may have closed it; where it is not, this does nothing.
        let _ = fs::set_permissions(WORKSPACE, fs::Permissions::from_mode(0o755));
        let (status, status_end) = pipe()?;
        let (input, terminal, sources, ends) = match start.stdio {
            Stdio::Pipes | Stdio::OpenPipes => {
                let ((input_end, input), (output, output_end), (errors, errors_end)) =
                    (pipe()?, pipe()?, pipe()?);
                let sources = vec![
                    Source { stream: Stream::Output, file: file(output)? },
                    Source { stream: Stream::Error, file: file(errors)? },
                ];
                let input = if start.stdio == Stdio::OpenPipes { Some(file(input)?) } else { None };
                (input, None, sources, Ends::Pipes(input_end, output_end, errors_end))
            }
            Stdio::Terminal { rows, columns } => {
                let (outer, inner) = terminal()?;
                sys::resize(outer.as_fd(), rows, columns)?;
                let source = Source { stream: Stream::Output, file: outer.try_clone()? };
                (Some(outer.try_clone()?), Some(outer), vec![source], Ends::Terminal(inner))
            }
        };
        sys::set_nonblocking(status.as_fd())?;
        let memory_kills = memory::kills();
        let supervisor = match sys::split()? {
            Forked::Child => supervise(start, &ends, status_end),
            Forked::Parent(pid) => pid,
        };
        Ok(Self {
            supervisor,
            input,
            terminal,
            waiting: VecDeque::new(),
            close_input: false,
            sources,
            status: Some(status),
            said: Vec::new(),
            deadline: (start.timeout > 0).then(|| Instant::now() + Duration::from_millis(start.timeout)),
            killed: None,
            timed_out: false,
            memory_kills,
            kept: Kept::default(),
            exit: None,
        })
    }

    /// Takes bytes for its input.
    pub fn give(&mut self, bytes: &[u8]) {
        if self.input.is_some() {
            self.waiting.extend(bytes);
            if self.waiting.len() > MOST_INPUT {
                // Input with a hole in it would be worse than none.
                self.kill();
            }
        }
    }

    /// Its input ends after what it was given.
    pub fn close_input(&mut self) {
        self.close_input = true;
        if self.waiting.is_empty() {
            self.input = None;
        }
    }

    /// Its terminal has another size.
    pub fn resize(&self, rows: u16, columns: u16) {
        if let Some(terminal) = &self.terminal {
            // A terminal that is gone has no size.
            let _ = sys::resize(terminal.as_fd(), rows, columns);
        }
    }

    /// Sends a signal to all its processes.
    pub fn signal(&mut self, number: i32) {
        if number == signal_number::KILL {
            self.kill();
        } else if self.exit.is_none() {
            tree::signal(self.supervisor, number);
        }
    }

    /// Kills all its processes; its supervisor then tells its end.
    fn kill(&mut self) {
        if self.exit.is_none() {
            self.killed.get_or_insert_with(Instant::now);
            tree::kill(self.supervisor);
        }
    }

    /// What must be done by now: its timeout, and the last resort after a kill that did not work.
    pub fn look_at_clock(&mut self, now: Instant) {
        if self.exit.is_some() {
            return;
        }
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            self.deadline = None;
            self.timed_out = true;
            self.kill();
        }
        if self.killed.is_some_and(|at| now >= at + KILL) {
            self.killed = Some(now);
            kill_everything();
        }
    }

    /// When [`Running::look_at_clock`] has something to do.
    pub fn next_look(&self) -> Option<Instant> {
        let last_resort = self.killed.map(|at| at + KILL);
        if self.exit.is_some() { None } else { self.deadline.into_iter().chain(last_resort).min() }
    }

    /// Where output may come from, unless there is no room for it.
    pub fn sources(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let open = if self.kept.is_full() { &[] } else { self.sources.as_slice() };
        open.iter().map(|source| source.file.as_fd())
    }

    /// Where its supervisor tells its end.
    pub fn status(&self) -> Option<BorrowedFd<'_>> {
        self.status.as_ref().map(|status| status.as_fd())
    }

    /// Where input can go, while some waits.
    pub fn hungry(&self) -> Option<BorrowedFd<'_>> {
        if self.waiting.is_empty() { None } else { self.input.as_ref().map(|input| input.as_fd()) }
    }

    /// Moves what can be moved: input in, output out.
    pub fn pump(&mut self) {
        self.feed();
        self.drain();
    }

    fn feed(&mut self) {
        while let (Some(input), false) = (&mut self.input, self.waiting.is_empty()) {
            match input.write(self.waiting.as_slices().0) {
                Ok(written) => drop(self.waiting.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // It reads no more; what it was to read is of no use.
                Err(_) => {
                    self.waiting.clear();
                    self.input = None;
                }
            }
        }
        if self.close_input {
            self.input = None;
        }
    }

    /// Takes what is printed, as long as there is room.
    fn drain(&mut self) {
        let mut piece = [0; PIECE];
        let kept = &mut self.kept;
        self.sources.retain_mut(|source| {
            while !kept.is_full() {
                match source.file.read(&mut piece) {
                    Ok(0) => return false,
                    Ok(length) => kept.push(source.stream, &piece[..length]),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                    // A terminal whose inner side is closed.
                    Err(_) => return false,
                }
            }
            true
        });
    }

    /// Hears its supervisor's verdict; for when [`Running::status`] is readable. It comes in one piece.
    pub fn hear(&mut self) {
        let Some(status) = &mut self.status else {
            return;
        };
        let mut verdict = [0; VERDICT];
        match status.read(&mut verdict) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Ok(length) => self.said.extend_from_slice(&verdict[..length]),
            Err(_) => {}
        }
        self.status = None;
        // It has nothing left to do, and whoever may have stopped it must not keep it.
        let _ = sys::send_signal(self.supervisor, signal_number::KILL);
    }

    /// Its supervisor has spoken: what is in the pipes now is all there will be.
    pub fn settle(&mut self) {
        if self.status.is_some() || self.exit.is_some() || !self.sources.is_empty() && self.kept.is_full() {
            return;
        }
        self.drain();
        if !self.sources.is_empty() && self.kept.is_full() {
            return;
        }
        self.sources.clear();
        self.input = None;
        self.terminal = None;
        let verdict = Verdict::decode(&self.said).unwrap_or_else(|_| {
            // Somebody killed the supervisor: what it had adopted is nobody's now, and must not stay.
            kill_everything();
            Verdict { how: How::Signalled(signal_number::KILL), reason: String::new() }
        });
        let (total, lost) = self.kept.counts();
        self.exit = Some(Exit {
            how: if self.timed_out { How::TimedOut } else { verdict.how },
            total,
            lost,
            out_of_memory: memory::kills().saturating_sub(self.memory_kills),
            reason: verdict.reason,
        });
    }
}

/// Kills every process in the container but the first, at one stroke.
fn kill_everything() {
    // There may be none.
    let _ = sys::send_signal(-1, signal_number::KILL);
}

/// A new terminal: its outer and its inner side.
fn terminal() -> io::Result<(File, File)> {
    /// It does not become this process's own.
    const NO_CONTROLLING: i32 = 0o400;
    let open = |path: &str| File::options().read(true).write(true).custom_flags(NO_CONTROLLING).open(path);
    let outer = open("/dev/ptmx")?;
    let number = sys::unlock(outer.as_fd())?;
    let inner = open(&format!("/dev/pts/{number}"))?;
    sys::set_nonblocking(outer.as_fd())?;
    Ok((outer, inner))
}
