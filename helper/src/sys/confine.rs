//! A second filter of system calls, inside the engine's own, for calls that older engines let through: rings, whose
//! requests no filter sees; sockets to the machine below a virtual machine; keyrings; page faults of one's own.
//!
//! It cannot be taken off, holds for every process started afterwards, and needs `no-new-privileges`, which every
//! sandbox has.

#![expect(unsafe_code, reason = "the filter is handed to the kernel by address")]

use std::ffi::{c_int, c_ulong};
use std::io;

unsafe extern "C" {
    fn prctl(option: c_int, ...) -> c_int;
}

/// `struct sock_filter`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    code: u16,
    yes: u8,
    no: u8,
    value: u32,
}

/// `struct sock_fprog`.
#[repr(C)]
struct Program {
    length: u16,
    steps: *const Step,
}

/// Loads a field of what is known of the call.
const LOAD: u16 = 0x20;
/// Compares with a number.
const EQUAL: u16 = 0x15;
/// Compares with a number, or more.
const AT_LEAST: u16 = 0x35;
/// Ends with a verdict.
const END: u16 = 0x06;

/// Where in `struct seccomp_data` things are.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
/// The first argument's lower half: both architectures are little-endian.
const FIRST: u32 = 16;

const ALLOW: u32 = 0x7fff_0000;
const ERROR: u32 = 0x0005_0000;
const NO_PERMISSION: u32 = ERROR + 1;
/// "No such call": programs then do without.
const NO_CALL: u32 = ERROR + 38;
/// "No such kind of address".
const NO_FAMILY: u32 = ERROR + 97;

#[cfg(target_arch = "x86_64")]
mod here {
    pub const ARCHITECTURE: u32 = 0xc000_003e;
    pub const SOCKET: u32 = 41;
    pub const KEYS: [u32; 3] = [248, 249, 250];
    pub const USERFAULTFD: u32 = 323;
}

#[cfg(not(target_arch = "x86_64"))]
mod here {
    pub const ARCHITECTURE: u32 = 0xc000_00b7;
    pub const SOCKET: u32 = 198;
    pub const KEYS: [u32; 3] = [217, 218, 219];
    pub const USERFAULTFD: u32 = 282;
}

/// The same on every architecture.
const RINGS: [u32; 3] = [425, 426, 427];
/// On x86-64, numbers from here on are the same calls by another name.
const OTHER_NAMES: u32 = 0x4000_0000;
/// Kernel cryptography, and machines below this one: families of sockets nobody needs and holes were found in.
const FAMILIES: [u32; 2] = [38, 40];

/// Puts the filter on this process and all it starts from now on.
pub fn confine() -> io::Result<()> {
    const SET_SECCOMP: c_int = 22;
    const FILTER: c_ulong = 2;
    let steps = steps();
    let length = u16::try_from(steps.len()).unwrap_or(u16::MAX);
    let program = Program { length, steps: steps.as_ptr() };
    // SAFETY: the kernel copies the program, which lives until the call is over, and checks every step of it.
    match unsafe { prctl(SET_SECCOMP, FILTER, std::ptr::from_ref(&program)) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Each refusal is a comparison and the verdict it skips when it does not hold.
fn steps() -> Vec<Step> {
    let mut steps = vec![
        step(LOAD, ARCHITECTURE),
        // Programs of another architecture have other numbers for the same calls.
        Step { code: EQUAL, yes: 1, no: 0, value: here::ARCHITECTURE },
        step(END, NO_CALL),
        step(LOAD, NUMBER),
        Step { code: AT_LEAST, yes: 0, no: 1, value: OTHER_NAMES },
        step(END, NO_CALL),
    ];
    for call in RINGS.into_iter().chain(here::KEYS) {
        steps.extend([Step { code: EQUAL, yes: 0, no: 1, value: call }, step(END, NO_CALL)]);
    }
    steps.extend([Step { code: EQUAL, yes: 0, no: 1, value: here::USERFAULTFD }, step(END, NO_PERMISSION)]);
    // Anything but a socket is allowed; of a socket, the family decides.
    steps.extend([
        Step { code: EQUAL, yes: 1, no: 0, value: here::SOCKET },
        step(END, ALLOW),
        step(LOAD, FIRST),
    ]);
    for family in FAMILIES {
        steps.extend([Step { code: EQUAL, yes: 0, no: 1, value: family }, step(END, NO_FAMILY)]);
    }
    steps.push(step(END, ALLOW));
    steps
}

const fn step(code: u16, value: u32) -> Step {
    Step { code, yes: 0, no: 0, value }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the filter as the kernel does.
    fn verdict(architecture: u32, number: u32, first: u32) -> u32 {
        let steps = steps();
        let (mut at, mut held) = (0, 0);
        loop {
            let Step { code, yes, no, value } = steps[at];
            at += 1;
            match code {
                LOAD => {
                    held = match value {
                        NUMBER => number,
                        ARCHITECTURE => architecture,
                        _ => first,
                    }
                }
                EQUAL => at += usize::from(if held == value { yes } else { no }),
                AT_LEAST => at += usize::from(if held >= value { yes } else { no }),
                _ => return value,
            }
        }
    }

    #[test]
    fn what_is_refused_is_refused_and_the_rest_is_not() {
        let verdict = |number, first| verdict(here::ARCHITECTURE, number, first);
        for call in RINGS.into_iter().chain(here::KEYS) {
            assert_eq!(verdict(call, 0), NO_CALL);
        }
        assert_eq!(verdict(here::USERFAULTFD, 0), NO_PERMISSION);
        assert_eq!((verdict(here::SOCKET, 40), verdict(here::SOCKET, 38)), (NO_FAMILY, NO_FAMILY));
        assert_eq!(
            (verdict(here::SOCKET, 1), verdict(here::SOCKET, 2), verdict(0, 40)),
            (ALLOW, ALLOW, ALLOW)
        );
        assert_eq!(verdict(here::SOCKET | OTHER_NAMES, 40), NO_CALL);
    }

    #[test]
    fn another_architecture_is_refused() {
        assert_eq!(verdict(0x4000_0003, 102, 0), NO_CALL);
    }

    /// In a thread of its own, which the filter ends with.
    #[test]
    fn the_kernel_takes_it() {
        let tried = std::thread::spawn(|| {
            crate::sys::probe::no_new_privileges().ok()?;
            confine().ok()?;
            crate::sys::probe::make_ring().err()?.raw_os_error()
        });
        assert_eq!(tried.join().ok().flatten(), Some(38));
    }
}
