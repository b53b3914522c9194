//! System calls the probes attack with. Each takes the most harmless form that a kernel without a guard would carry
//! out, so that a probe that gets through has shown something and broken nothing.

#![expect(unsafe_code, reason = "system calls the standard library has no words for")]

use std::ffi::{CStr, c_int, c_long};
use std::io;

use number as n;

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn fork() -> c_int;
}

#[cfg(target_arch = "x86_64")]
mod number {
    use std::ffi::c_long;
    pub const CLOSE: c_long = 3;
    pub const SOCKET: c_long = 41;
    pub const CONNECT: c_long = 42;
    pub const WAIT4: c_long = 61;
    pub const KILL: c_long = 62;
    pub const PTRACE: c_long = 101;
    pub const SYSLOG: c_long = 103;
    pub const SETUID: c_long = 105;
    pub const SETGID: c_long = 106;
    pub const SETGROUPS: c_long = 116;
    pub const CAPSET: c_long = 126;
    pub const SETPRIORITY: c_long = 141;
    pub const SCHED_SETSCHEDULER: c_long = 144;
    pub const PIVOT_ROOT: c_long = 155;
    pub const PRCTL: c_long = 157;
    pub const CHROOT: c_long = 161;
    pub const ACCT: c_long = 163;
    pub const SETTIMEOFDAY: c_long = 164;
    pub const MOUNT: c_long = 165;
    pub const SWAPON: c_long = 167;
    pub const REBOOT: c_long = 169;
    pub const SETHOSTNAME: c_long = 170;
    pub const IOPL: c_long = 172;
    pub const INIT_MODULE: c_long = 175;
    pub const DELETE_MODULE: c_long = 176;
    pub const KEXEC_LOAD: c_long = 246;
    pub const ADD_KEY: c_long = 248;
    pub const KEYCTL: c_long = 250;
    pub const MKNODAT: c_long = 259;
    pub const FCHOWNAT: c_long = 260;
    pub const UNSHARE: c_long = 272;
    pub const PERF_EVENT_OPEN: c_long = 298;
    pub const FANOTIFY_INIT: c_long = 300;
    pub const PRLIMIT64: c_long = 302;
    pub const OPEN_BY_HANDLE_AT: c_long = 304;
    pub const SETNS: c_long = 308;
    pub const PROCESS_VM_READV: c_long = 310;
    pub const BPF: c_long = 321;
    pub const USERFAULTFD: c_long = 323;
}

/// The numbers that newer architectures share.
#[cfg(not(target_arch = "x86_64"))]
mod number {
    use std::ffi::c_long;
    pub const MKNODAT: c_long = 33;
    pub const MOUNT: c_long = 40;
    pub const PIVOT_ROOT: c_long = 41;
    pub const CHROOT: c_long = 51;
    pub const FCHOWNAT: c_long = 54;
    pub const CLOSE: c_long = 57;
    pub const ACCT: c_long = 89;
    pub const CAPSET: c_long = 91;
    pub const UNSHARE: c_long = 97;
    pub const KEXEC_LOAD: c_long = 104;
    pub const INIT_MODULE: c_long = 105;
    pub const DELETE_MODULE: c_long = 106;
    pub const SYSLOG: c_long = 116;
    pub const PTRACE: c_long = 117;
    pub const SCHED_SETSCHEDULER: c_long = 119;
    pub const KILL: c_long = 129;
    pub const SETPRIORITY: c_long = 140;
    pub const REBOOT: c_long = 142;
    pub const SETGID: c_long = 144;
    pub const SETUID: c_long = 146;
    pub const SETGROUPS: c_long = 159;
    pub const SETHOSTNAME: c_long = 161;
    pub const PRCTL: c_long = 167;
    pub const SETTIMEOFDAY: c_long = 170;
    pub const SOCKET: c_long = 198;
    pub const CONNECT: c_long = 203;
    pub const ADD_KEY: c_long = 217;
    pub const KEYCTL: c_long = 219;
    pub const SWAPON: c_long = 224;
    pub const PERF_EVENT_OPEN: c_long = 241;
    pub const WAIT4: c_long = 260;
    pub const PRLIMIT64: c_long = 261;
    pub const FANOTIFY_INIT: c_long = 262;
    pub const OPEN_BY_HANDLE_AT: c_long = 265;
    pub const SETNS: c_long = 268;
    pub const PROCESS_VM_READV: c_long = 270;
    pub const BPF: c_long = 280;
    pub const USERFAULTFD: c_long = 282;
}

/// Numbers that are the same everywhere.
const IO_URING_SETUP: c_long = 425;
const FSOPEN: c_long = 430;

/// "The working folder" where a call takes a folder's descriptor.
const HERE: usize = negative(100);
/// A descriptor that is none.
const NONE: usize = negative(1);

/// A negative number as a call takes it.
const fn negative(number: usize) -> usize {
    number.wrapping_neg()
}

/// A call's answer, when it was carried out.
type Done = io::Result<usize>;

fn call<const COUNT: usize>(number: c_long, arguments: [usize; COUNT]) -> Done {
    let mut six = [0; 6];
    six[..COUNT].copy_from_slice(&arguments);
    // SAFETY: the callers below pass numbers, null, or addresses of values that live until the call is over and are
    // as large as the call reads or writes.
    let answer = unsafe { syscall(number, six[0], six[1], six[2], six[3], six[4], six[5]) };
    usize::try_from(answer).map_err(|_| io::Error::last_os_error())
}

fn at<T: ?Sized>(value: &T) -> usize {
    std::ptr::from_ref(value).cast::<u8>() as usize
}

fn text(value: &CStr) -> usize {
    value.as_ptr() as usize
}

/// Mounts an empty file system of memory at `target`; with `flags`, changes the mount that is there.
pub fn mount(target: &CStr, flags: usize) -> Done {
    call(n::MOUNT, [text(c"tmpfs"), text(target), text(c"tmpfs"), flags, 0])
}

/// Begins a mount the newer way.
pub fn open_filesystem() -> Done {
    call(FSOPEN, [text(c"tmpfs"), 0]).map(close)
}

/// Makes a folder that does not exist the root of every process here.
pub fn pivot_root() -> Done {
    let nowhere = text(c"/nonexistent/root");
    call(n::PIVOT_ROOT, [nowhere, nowhere])
}

/// Makes the working folder this process's root.
pub fn change_root() -> Done {
    call(n::CHROOT, [text(c".")])
}

/// Opens a folder of the file system that `mount` lies on, by the number of its root, past every path.
pub fn open_by_handle(mount: c_int) -> Done {
    /// `struct file_handle` with an inode number and a generation.
    #[repr(C)]
    struct Handle {
        bytes: u32,
        kind: i32,
        inode: u32,
        generation: u32,
    }
    let root = Handle { bytes: 8, kind: 1, inode: 2, generation: 0 };
    call(n::OPEN_BY_HANDLE_AT, [usize::try_from(mount).unwrap_or(NONE), at(&root), 0]).map(close)
}

/// Makes a device file: `block` of `major` and `minor`, else a character device.
pub fn make_device(path: &CStr, kind: DeviceKind, major: usize, minor: usize) -> Done {
    let mode = match kind {
        DeviceKind::Block => 0o060_600,
        DeviceKind::Character => 0o020_600,
    };
    call(n::MKNODAT, [HERE, text(path), mode, major << 8 | minor])
}

/// What a device file stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceKind {
    /// A disk.
    Block,
    /// Everything else.
    Character,
}

/// Becomes another user.
pub fn set_user(id: usize) -> Done {
    call(n::SETUID, [id])
}

/// Joins another group.
pub fn set_group(id: usize) -> Done {
    call(n::SETGID, [id])
}

/// Joins root's group besides.
pub fn add_group() -> Done {
    let root = [0_u32];
    call(n::SETGROUPS, [1, at(&root)])
}

/// Gives a file to root.
pub fn give_to_root(path: &CStr) -> Done {
    call(n::FCHOWNAT, [HERE, text(path), 0, 0, 0])
}

/// Takes every capability.
pub fn take_capabilities() -> Done {
    // `_LINUX_CAPABILITY_VERSION_3` and "this process".
    let header = [0x2008_0522_u32, 0];
    let all = [u32::MAX; 6];
    call(n::CAPSET, [at(&header), at(&all)])
}

/// Keeps a capability (`CAP_SYS_ADMIN`) across programs.
pub fn keep_capability() -> Done {
    call(n::PRCTL, [47, 2, 21])
}

/// Gives up new privileges for this thread and what it starts.
#[cfg(test)]
pub fn no_new_privileges() -> Done {
    call(n::PRCTL, [38, 1])
}

/// Allows new privileges again.
pub fn allow_privileges() -> Done {
    call(n::PRCTL, [38, 0])
}

/// Moves into new namespaces.
pub fn unshare(flags: usize) -> Done {
    call(n::UNSHARE, [flags])
}

/// Joins a namespace.
pub fn join_namespace(descriptor: c_int) -> Done {
    call(n::SETNS, [usize::try_from(descriptor).unwrap_or(NONE), 0])
}

/// Watches a process as a debugger does, without stopping it.
pub fn seize(process: usize) -> Done {
    const SEIZE: usize = 0x4206;
    call(n::PTRACE, [SEIZE, process])
}

/// Reads nothing of another process's memory: whether it might is answered first.
pub fn read_memory(process: usize) -> Done {
    let mut byte = 0_u8;
    let local = [std::ptr::from_mut(&mut byte) as usize, 1];
    let remote = [0x1000_usize, 1];
    call(n::PROCESS_VM_READV, [process, at(&local), 1, at(&remote), 1, 0])
}

/// Sends a signal; 0 only asks whether it might.
pub fn signal(process: usize, number: usize) -> Done {
    call(n::KILL, [process, number])
}

/// A copy of this process; `None` in the copy.
pub fn copy_process() -> io::Result<Option<usize>> {
    // SAFETY: the copy of a process with one thread may do whatever the process may.
    match unsafe { fork() } {
        0 => Ok(None),
        id => usize::try_from(id).map(Some).map_err(|_| io::Error::last_os_error()),
    }
}

/// Waits for the end of a child.
pub fn reap(process: usize) -> Done {
    call(n::WAIT4, [process, 0, 0, 0])
}

/// Loads a kernel module of no bytes.
pub fn load_module() -> Done {
    call(n::INIT_MODULE, [0, 0, text(c"")])
}

/// Unloads a module that does not exist.
pub fn unload_module() -> Done {
    call(n::DELETE_MODULE, [text(c"tidemill_no_such_module"), 0o4000])
}

/// Readies another kernel, with flags that no kernel takes.
pub fn load_kernel() -> Done {
    call(n::KEXEC_LOAD, [0, 0, 0, usize::MAX])
}

/// Restarts the machine, without the numbers that would make it so.
pub fn restart() -> Done {
    call(n::REBOOT, [1, 1, 0])
}

/// Makes an array for programs in the kernel.
pub fn make_bpf_map() -> Done {
    // Array, 4-byte keys, 8-byte values, 1 entry.
    let attributes = [2_u32, 4, 8, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    call(n::BPF, [0, at(&attributes), size_of_val(&attributes)]).map(close)
}

/// Counts this process's own processor time by the kernel's performance events.
pub fn open_performance_event() -> Done {
    let mut attributes = [0_u32; 32];
    (attributes[0], attributes[1]) = (1, 128);
    call(n::PERF_EVENT_OPEN, [at(&attributes), 0, NONE, NONE, 0]).map(close)
}

/// Adds a key to this process's own keyring in the kernel.
pub fn add_key() -> Done {
    /// `KEY_SPEC_PROCESS_KEYRING`.
    const OWN: usize = negative(2);
    call(n::ADD_KEY, [text(c"user"), text(c"tidemill-probe"), at(b"x"), 1, OWN])
}

/// Asks for the session's keyring, which containers may share.
pub fn session_keyring() -> Done {
    /// `KEY_SPEC_SESSION_KEYRING`.
    const SESSION: usize = negative(3);
    call(n::KEYCTL, [0, SESSION, 0])
}

/// Handles page faults oneself, which makes races in the kernel easy to win.
pub fn handle_faults() -> Done {
    call(n::USERFAULTFD, [0]).map(close)
}

/// Makes a ring of requests that seccomp does not see.
pub fn make_ring() -> Done {
    let mut parameters = [0_u8; 120];
    call(IO_URING_SETUP, [1, std::ptr::from_mut(&mut parameters) as usize]).map(close)
}

/// Sets the kernel's time zone to none, which it is.
pub fn set_time_zone() -> Done {
    let none = [0_i32; 2];
    call(n::SETTIMEOFDAY, [0, at(&none)])
}

/// Reads the kernel's log.
pub fn read_kernel_log() -> Done {
    let mut bytes = [0_u8; 64];
    call(n::SYSLOG, [3, std::ptr::from_mut(&mut bytes) as usize, 64])
}

/// Swaps to a file that does not exist.
pub fn swap_on() -> Done {
    call(n::SWAPON, [text(c"/nonexistent/swap"), 0])
}

/// Writes accounting to a file that does not exist.
pub fn account() -> Done {
    call(n::ACCT, [text(c"/nonexistent/acct")])
}

/// Asks for the machine's input and output ports.
#[cfg(target_arch = "x86_64")]
pub fn raise_io_privilege() -> Done {
    call(n::IOPL, [3])
}

/// Watches every file of the machine.
pub fn watch_all_files() -> Done {
    call(n::FANOTIFY_INIT, [4, 0]).map(close)
}

/// Runs before every ordinary process.
pub fn run_in_real_time() -> Done {
    let priority = 1_i32;
    call(n::SCHED_SETSCHEDULER, [0, 1, at(&priority)])
}

/// Runs before most others.
pub fn raise_priority() -> Done {
    call(n::SETPRIORITY, [0, 0, negative(20)])
}

/// Renames the machine to what it is called anyway.
pub fn rename_machine(name: &str) -> Done {
    call(n::SETHOSTNAME, [at(name), name.len()])
}

/// Raises the hard limit of open files.
pub fn raise_open_files() -> Done {
    let (now, wanted) = ([0_u64; 2], [1_u64 << 20; 2]);
    call(n::PRLIMIT64, [0, 7, 0, at(&now)])?;
    // A limit that is high already is not raised by this.
    if now[1] >= wanted[1] {
        return Ok(0);
    }
    call(n::PRLIMIT64, [0, 7, at(&wanted), 0])
}

/// Opens a socket, and closes it.
pub fn socket(family: usize, kind: usize, protocol: usize) -> Done {
    call(n::SOCKET, [family, kind, protocol]).map(close)
}

/// Connects to a port of the machine this virtual machine runs on.
pub fn connect_to_hypervisor(port: u32) -> Done {
    /// `struct sockaddr_vm`.
    #[repr(C)]
    struct Address {
        family: u16,
        reserved: u16,
        port: u32,
        machine: u32,
        zero: [u8; 4],
    }
    let socket = call(n::SOCKET, [40, 1 | 0o4000, 0])?;
    let address = Address { family: 40, reserved: 0, port, machine: 2, zero: [0; 4] };
    let connected = call(n::CONNECT, [socket, at(&address), size_of::<Address>()]);
    close(socket);
    connected
}

fn close(descriptor: usize) -> usize {
    // A descriptor that was just opened can be closed; if not, it goes with the process.
    let _ = call(n::CLOSE, [descriptor]);
    descriptor
}
