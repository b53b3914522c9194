//! The C library's calls that the standard library does not offer, each behind a safe function.

#![expect(unsafe_code, reason = "the only calls into the C library; std already links it")]

#[cfg(target_os = "linux")]
pub mod confine;
#[cfg(target_os = "linux")]
pub mod probe;

use std::ffi::{CString, c_char, c_int, c_long, c_short, c_ulong, c_void};
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};

unsafe extern "C" {
    fn poll(fds: *mut PollFd, count: c_ulong, timeout: c_int) -> c_int;
    fn fcntl(fd: c_int, command: c_int, ...) -> c_int;
    fn fork() -> c_int;
    fn waitpid(pid: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn kill(pid: c_int, signal: c_int) -> c_int;
    fn signal(signal: c_int, handler: usize) -> usize;
    fn setsid() -> c_int;
    fn prctl(option: c_int, ...) -> c_int;
    fn ioctl(fd: c_int, request: c_ulong, ...) -> c_int;
    fn openat(folder: c_int, path: *const c_char, flags: c_int, ...) -> c_int;
    fn mkdirat(folder: c_int, path: *const c_char, mode: u32) -> c_int;
    fn renameat(from: c_int, old: *const c_char, to: c_int, new: *const c_char) -> c_int;
    fn unlinkat(folder: c_int, path: *const c_char, flags: c_int) -> c_int;
    fn dup2(from: c_int, to: c_int) -> c_int;
    fn close(fd: c_int) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
    fn _exit(code: c_int) -> !;
}

/// Something to wait for; see `poll(2)`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PollFd {
    fd: c_int,
    events: c_short,
    revents: c_short,
}

/// There is something to read, or the other end is closed.
pub const READABLE: c_short = 0x001;
/// There is room to write.
pub const WRITABLE: c_short = 0x004;

impl PollFd {
    /// Waits for `events` on `fd`.
    pub fn new(fd: BorrowedFd<'_>, events: c_short) -> Self {
        Self { fd: fd.as_raw_fd(), events, revents: 0 }
    }

    /// Whether anything happened, an error and a hang-up included.
    pub fn is_ready(&self) -> bool {
        self.revents != 0
    }
}

/// `kill(2)` numbers.
pub mod signal_number {
    /// Cannot be ignored.
    pub const KILL: i32 = 9;
    /// Cannot be ignored either; the process stands still.
    pub const STOP: i32 = 19;
    /// A child has ended.
    pub const CHILD: i32 = 17;
    /// Nobody reads.
    pub const PIPE: i32 = 13;
}

/// `errno` numbers.
pub mod errno {
    /// It is not there.
    pub const ENOENT: i32 = 2;
    /// Not allowed.
    pub const EACCES: i32 = 13;
    /// Something on the way is no folder.
    pub const ENOTDIR: i32 = 20;
    /// No room.
    pub const ENOSPC: i32 = 28;
    /// A link where none is followed.
    pub const ELOOP: i32 = 40;
    /// The quota is used up.
    pub const EDQUOT: i32 = 122;
}

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Waits until one of `fds` is ready or `milliseconds` have passed.
pub fn wait(fds: &mut [PollFd], milliseconds: i32) -> io::Result<()> {
    // SAFETY: the slice is valid for its length, and the kernel writes `revents` only.
    let result = unsafe { poll(fds.as_mut_ptr(), fds.len() as c_ulong, milliseconds) };
    match check(result) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        other => other.map(drop),
    }
}

/// Reads and writes on `fd` return at once.
pub fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    const GET: c_int = 3;
    const SET: c_int = 4;
    const NONBLOCK: c_int = 0o4000;
    // SAFETY: the descriptor is borrowed, so it is open.
    let flags = check(unsafe { fcntl(fd.as_raw_fd(), GET) })?;
    // SAFETY: as above.
    check(unsafe { fcntl(fd.as_raw_fd(), SET, flags | NONBLOCK) }).map(drop)
}

/// Lets a pipe hold more, so that both ends work longer before one waits for the other.
pub fn widen_pipe(fd: BorrowedFd<'_>, bytes: c_int) -> io::Result<()> {
    const SET_PIPE_SIZE: c_int = 1031;
    // SAFETY: the descriptor is borrowed, so it is open.
    check(unsafe { fcntl(fd.as_raw_fd(), SET_PIPE_SIZE, bytes) }).map(drop)
}

/// The two processes after a fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forked {
    /// This is the old one; the new one has this id.
    Parent(i32),
    /// This is the new one.
    Child,
}

/// Makes a second process of this one. The helper has one thread, so the new process may do anything.
pub fn split() -> io::Result<Forked> {
    // SAFETY: the process has one thread, so no lock is held by another one.
    match check(unsafe { fork() })? {
        0 => Ok(Forked::Child),
        pid => Ok(Forked::Parent(pid)),
    }
}

/// Ends this process at once; nothing is flushed or dropped.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: it has no precondition.
    unsafe { _exit(code) }
}

/// A child that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reaped {
    /// Its id.
    pub pid: i32,
    /// Its exit code, when it ended by itself.
    pub code: Option<i32>,
    /// The signal it ended by otherwise.
    pub signal: i32,
}

/// What a wait for children gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// One has ended.
    Ended(Reaped),
    /// They all live.
    Living,
    /// There is none.
    Childless,
}

/// How long to wait for a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Until one ends.
    Forever,
    /// Not at all.
    None,
}

/// Waits for any child.
pub fn reap(patience: Patience) -> Waited {
    const NO_HANG: c_int = 1;
    let options = if patience == Patience::None { NO_HANG } else { 0 };
    loop {
        let mut status = 0;
        // SAFETY: `status` outlives the call.
        match unsafe { waitpid(-1, &raw mut status, options) } {
            0 => return Waited::Living,
            pid if pid > 0 => {
                let signal = status & 0x7f;
                let code = (signal == 0).then_some((status >> 8) & 0xff);
                return Waited::Ended(Reaped { pid, code, signal });
            }
            _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            _ => return Waited::Childless,
        }
    }
}

/// Sends a signal to a process, or to every process but this and the first when `pid` is -1.
pub fn send_signal(pid: i32, number: i32) -> io::Result<()> {
    // SAFETY: it has no precondition.
    check(unsafe { kill(pid, number) }).map(drop)
}

/// What happens at a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// What the kernel does by itself.
    Default,
    /// Nothing. For [`signal_number::CHILD`]: children are reaped by the kernel.
    Ignore,
}

/// Says what happens at a signal.
pub fn set_signal(number: i32, disposition: Disposition) {
    // SAFETY: both handlers are the kernel's own.
    unsafe { signal(number, usize::from(disposition == Disposition::Ignore)) };
}

/// No other process of the same user may look into this one, or trace it.
pub fn hide() -> io::Result<()> {
    const SET_DUMPABLE: c_int = 4;
    // SAFETY: it has no precondition.
    check(unsafe { prctl(SET_DUMPABLE, 0 as c_ulong) }).map(drop)
}

/// Orphans among the descendants of this process become its children.
pub fn adopt_orphans() -> io::Result<()> {
    const SET_CHILD_SUBREAPER: c_int = 36;
    // SAFETY: it has no precondition.
    check(unsafe { prctl(SET_CHILD_SUBREAPER, 1 as c_ulong) }).map(drop)
}

/// Starts a command in a session of its own; `terminal` becomes its controlling terminal.
pub fn spawn(command: &mut Command, terminal: Option<RawFd>) -> io::Result<Child> {
    const SET_CONTROLLING: c_ulong = 0x540e;
    let prepare = move || {
        // SAFETY: both calls are async-signal-safe and get plain numbers.
        unsafe {
            check(setsid())?;
            if let Some(fd) = terminal {
                check(ioctl(fd, SET_CONTROLLING, 0))?;
            }
        }
        Ok(())
    };
    // SAFETY: the closure makes system calls only.
    unsafe { command.pre_exec(prepare) };
    command.spawn()
}

/// Makes `to` (0, 1 or 2) another name of `from`.
pub fn put_at(from: BorrowedFd<'_>, to: RawFd) -> io::Result<()> {
    // SAFETY: `from` is open, and the helper never owns 0, 1 or 2 as a value.
    check(unsafe { dup2(from.as_raw_fd(), to) }).map(drop)
}

/// Closes every descriptor from 3 on but `keep`.
pub fn close_others(keep: BorrowedFd<'_>) {
    const CLOSE_RANGE: c_long = 436;
    const MOST: c_int = 4096;
    let keep = keep.as_raw_fd();
    let close_from = |first: c_int, last: c_int| {
        if first > last {
            return;
        }
        // SAFETY: values that own these descriptors are never used or dropped again by the caller, which ends by
        // `exit_now`.
        unsafe {
            if syscall(CLOSE_RANGE, c_long::from(first), c_long::from(last), 0 as c_long) != 0 {
                for fd in first..=last.min(MOST) {
                    close(fd);
                }
            }
        }
    };
    close_from(3, keep - 1);
    close_from(keep + 1, c_int::MAX);
}

/// The size of a terminal; see `ioctl_tty(2)`.
#[repr(C)]
struct WindowSize {
    rows: u16,
    columns: u16,
    width: u16,
    height: u16,
}

/// Tells a terminal its size; what runs in it gets a signal.
pub fn resize(terminal: BorrowedFd<'_>, rows: u16, columns: u16) -> io::Result<()> {
    const SET_SIZE: c_ulong = 0x5414;
    let size = WindowSize { rows, columns, width: 0, height: 0 };
    // SAFETY: `size` outlives the call.
    check(unsafe { ioctl(terminal.as_raw_fd(), SET_SIZE, &raw const size) }).map(drop)
}

/// Unlocks the other side of a terminal just opened at `/dev/ptmx`; gives its number under `/dev/pts`.
pub fn unlock(terminal: BorrowedFd<'_>) -> io::Result<u32> {
    const SET_LOCK: c_ulong = 0x4004_5431;
    const GET_NUMBER: c_ulong = 0x8004_5430;
    let (locked, mut number): (c_int, c_int) = (0, 0);
    // SAFETY: both numbers outlive their calls.
    unsafe {
        check(ioctl(terminal.as_raw_fd(), SET_LOCK, &raw const locked))?;
        check(ioctl(terminal.as_raw_fd(), GET_NUMBER, (&raw mut number).cast::<c_void>()))?;
    }
    Ok(number.unsigned_abs())
}

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// To know what stands there; nothing is opened by it.
    Look,
    /// To read a file; a pipe does not hang.
    Read,
    /// To write a new file with this mode.
    New(u32),
}

/// Opens `name` in `folder`; a link is never followed.
pub fn open_in(folder: BorrowedFd<'_>, name: &[u8], opening: Opening) -> io::Result<OwnedFd> {
    #[cfg(any(target_arch = "aarch64", target_arch = "arm"))]
    const NO_FOLLOW: c_int = 0o100_000;
    #[cfg(not(any(target_arch = "aarch64", target_arch = "arm")))]
    const NO_FOLLOW: c_int = 0o400_000;
    const CLOSE_ON_EXEC: c_int = 0o2_000_000;
    const NONBLOCK: c_int = 0o4000;
    const PATH: c_int = 0o10_000_000;
    const WRITE: c_int = 1;
    const CREATE: c_int = 0o100;
    const EXCLUSIVE: c_int = 0o200;
    let (flags, mode) = match opening {
        Opening::Look => (PATH, 0),
        Opening::Read => (NONBLOCK, 0),
        Opening::New(mode) => (WRITE | CREATE | EXCLUSIVE, mode),
    };
    let name = text(name)?;
    let flags = flags | NO_FOLLOW | CLOSE_ON_EXEC;
    // SAFETY: `name` ends in a zero byte, and the folder is open.
    let fd = check(unsafe { openat(folder.as_raw_fd(), name.as_ptr(), flags, mode) })?;
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Makes a folder.
pub fn make_folder(folder: BorrowedFd<'_>, name: &[u8], mode: u32) -> io::Result<()> {
    let name = text(name)?;
    // SAFETY: `name` ends in a zero byte, and the folder is open.
    check(unsafe { mkdirat(folder.as_raw_fd(), name.as_ptr(), mode) }).map(drop)
}

/// Renames within a folder, over what is there.
pub fn rename_in(folder: BorrowedFd<'_>, from: &[u8], to: &[u8]) -> io::Result<()> {
    let (from, to, fd) = (text(from)?, text(to)?, folder.as_raw_fd());
    // SAFETY: both names end in a zero byte, and the folder is open.
    check(unsafe { renameat(fd, from.as_ptr(), fd, to.as_ptr()) }).map(drop)
}

/// Removes a file.
pub fn remove_in(folder: BorrowedFd<'_>, name: &[u8]) -> io::Result<()> {
    let name = text(name)?;
    // SAFETY: `name` ends in a zero byte, and the folder is open.
    check(unsafe { unlinkat(folder.as_raw_fd(), name.as_ptr(), 0) }).map(drop)
}

fn text(name: &[u8]) -> io::Result<CString> {
    CString::new(name).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
}
