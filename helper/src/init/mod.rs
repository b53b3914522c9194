//! The first process of a container: it reaps, runs commands, and talks to the host over its own input and output.
//!
//! It has one thread and never blocks. It ends when its input does, and is otherwise ended from outside: as the first
//! process it ignores every signal, so nothing in the container can end it, and it cannot be looked into.

mod command;
mod files;
mod kept;
mod list;
mod memory;
mod outgoing;
mod serve;
mod supervise;
mod tree;
mod untouched;

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::{Duration, Instant};

use crate::frame::Decoder;
use crate::init::outgoing::Outgoing;
use crate::init::serve::Served;
use crate::message::{KEY, KEY_VARIABLE};
use crate::sync::Sync;
use crate::sys::{self, Disposition, PollFd, READABLE, WRITABLE, signal_number};

/// A host that has been silent for so long is not there; output is then kept, and the oldest let go.
const SILENCE: Duration = Duration::from_secs(10);
/// Bytes read at once.
const PIECE: usize = 256 * 1024;
/// Bytes the pipes to and from the host may hold: as much as anybody may ask for.
const PIPE: i32 = 1 << 20;

/// Runs until the input ends.
pub fn run() -> io::Result<()> {
    let key = key()?;
    sys::hide()?;
    // Where the kernel takes no filter, the engine's own stands alone.
    #[cfg(target_os = "linux")]
    let _ = sys::confine::confine();
    sys::set_signal(signal_number::CHILD, Disposition::Ignore);
    sys::set_signal(signal_number::PIPE, Disposition::Ignore);
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    sys::set_nonblocking(input.as_fd())?;
    sys::set_nonblocking(output.as_fd())?;
    for pipe in [input.as_fd(), output.as_fd()] {
        // What is not a pipe, or may not be larger, works as it is.
        let _ = sys::widen_pipe(pipe, PIPE);
    }
    let (mut incoming, mut served) = (Incoming::new(key), Served::new(Outgoing::new(output)));
    let mut heard: Option<Instant> = None;
    loop {
        let now = Instant::now();
        if heard.is_some_and(|at| now < at + SILENCE) {
            served.tell_host();
        } else {
            served.go_on_alone();
        }
        served.outgoing.pump()?;
        let ready = wait(&input, &served, now)?;
        if ready.input {
            match incoming.read(&mut input)? {
                Some(frames) => {
                    heard = Some(Instant::now());
                    for frame in frames {
                        served.hear(&frame);
                    }
                }
                None => return Ok(()),
            }
        }
        served.pump(&ready.told, Instant::now());
    }
}

/// The key the host gave this container.
fn key() -> io::Result<[u8; KEY]> {
    let text = std::env::var(KEY_VARIABLE).unwrap_or_default();
    let bytes: Vec<u8> = (0..text.len() / 2)
        .filter_map(|at| u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok())
        .collect();
    bytes.try_into().map_err(|_| io::Error::other(format!("{KEY_VARIABLE} is not a key")))
}

/// What a wait has found.
struct Ready {
    /// The host has said something.
    input: bool,
    /// Commands whose supervisors have spoken.
    told: Vec<u32>,
}

/// Waits until there is something to do.
fn wait(input: &File, served: &Served, now: Instant) -> io::Result<Ready> {
    let mut fds = vec![PollFd::new(input.as_fd(), READABLE)];
    let mut add = |fd: BorrowedFd<'_>, events| fds.push(PollFd::new(fd, events));
    let mut supervisors = Vec::new();
    for (id, command) in served.commands() {
        if let Some(status) = command.status() {
            supervisors.push(*id);
            add(status, READABLE);
        }
    }
    for (_, command) in served.commands() {
        command.sources().for_each(|source| add(source, READABLE));
        command.hungry().into_iter().for_each(|input| add(input, WRITABLE));
    }
    served.outgoing.pending().into_iter().for_each(|output| add(output, WRITABLE));
    let next = served.commands().filter_map(|(_, command)| command.next_look()).min();
    let until = next.map_or(SILENCE, |next| next.saturating_duration_since(now)).min(SILENCE);
    let until = if served.has_more_to_say() { Duration::ZERO } else { until };
    // Rounded up: a wait that ends too early would turn into a busy one.
    sys::wait(&mut fds, i32::try_from(until.as_micros().div_ceil(1000)).unwrap_or(i32::MAX))?;
    let told =
        supervisors.into_iter().zip(&fds[1..]).filter(|(_, fd)| fd.is_ready()).map(|(id, _)| id).collect();
    Ok(Ready { input: fds[0].is_ready(), told })
}

/// Frames from the host. After the key the stream begins anew.
struct Incoming {
    key: [u8; KEY],
    sync: Sync,
    decoder: Decoder,
    /// Whether the key has been seen at all.
    begun: bool,
    piece: Box<[u8]>,
}

impl Incoming {
    fn new(key: [u8; KEY]) -> Self {
        let piece = vec![0; PIECE].into_boxed_slice();
        Self { key, sync: Sync::new(key), decoder: Decoder::default(), begun: false, piece }
    }

    /// Frames that have come; nothing when the stream has ended.
    fn read(&mut self, input: &mut File) -> io::Result<Option<Vec<crate::frame::Frame>>> {
        let length = match input.read(&mut self.piece) {
            Ok(0) => return Ok(None),
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Some(Vec::new())),
            Err(error) => return Err(error),
        };
        let mut bytes = &self.piece[..length];
        if let Some(end) = self.sync.find(bytes) {
            self.sync = Sync::new(self.key);
            self.decoder = Decoder::default();
            self.begun = true;
            bytes = &bytes[end..];
        }
        if self.begun {
            self.decoder.feed(bytes);
        }
        let mut frames = Vec::new();
        while let Some(frame) = self.decoder.next()? {
            frames.push(frame);
        }
        Ok(Some(frames))
    }
}
