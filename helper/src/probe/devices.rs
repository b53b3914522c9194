//! Devices: the machine itself.

use std::fs;
use std::os::unix::fs::FileTypeExt as _;

use super::attempt::{none_readable, none_writable, words};
use super::{Asked, Held, Probe};
use crate::sys::probe::{self as sys, DeviceKind};

pub(super) const PROBES: &[Probe] = &[
    Probe::new("devices/memory", "The machine's memory and ports cannot be opened.", memory),
    Probe::new("devices/disks", "No disk of the machine is there.", disks),
    Probe::new("devices/special", "Virtual machines, tunnels and user file systems cannot be made.", special),
    Probe::new("devices/make-disk", "A command cannot make a device file of a disk.", make_disk),
    Probe::new(
        "devices/make-memory",
        "A command cannot make a device file of the machine's memory.",
        make_memory,
    ),
    Probe::new("devices/only-usual", "There is no device but the usual harmless ones.", only_usual),
];

fn memory(_: &Asked) -> Held {
    none_readable(&["/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/dev/nvram"])?;
    none_writable(&["/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/dev/nvram"])
}

fn disks(_: &Asked) -> Held {
    let mut pending = vec![std::path::PathBuf::from("/dev")];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_block_device() {
                return Err(format!("{} is a disk", entry.path().display()));
            }
            if kind.is_dir() {
                pending.push(entry.path());
            }
        }
    }
    none_readable(&["/dev/sda", "/dev/vda", "/dev/nvme0n1", "/dev/xvda", "/dev/dm-0", "/dev/loop0"])
}

fn special(_: &Asked) -> Held {
    none_writable(&[
        "/dev/kvm",
        "/dev/fuse",
        "/dev/net/tun",
        "/dev/vhost-vsock",
        "/dev/uinput",
        "/dev/loop-control",
    ])
}

fn make_disk(_: &Asked) -> Held {
    make(DeviceKind::Block, 8, 0)
}

fn make_memory(_: &Asked) -> Held {
    make(DeviceKind::Character, 1, 1)
}

/// Made is not opened: a device file that could be made is removed again.
fn make(kind: DeviceKind, major: usize, minor: usize) -> Held {
    match sys::make_device(c"/tmp/probe-device", kind, major, minor) {
        Ok(_) => {
            // It goes with the container at the latest.
            let _ = fs::remove_file("/tmp/probe-device");
            Err("it was made".to_owned())
        }
        Err(error) => Ok(words(&error)),
    }
}

fn only_usual(_: &Asked) -> Held {
    const USUAL: [&str; 16] = [
        "null", "zero", "full", "random", "urandom", "tty", "console", "ptmx", "pts", "shm", "mqueue", "fd",
        "stdin", "stdout", "stderr", "core",
    ];
    let entries = fs::read_dir("/dev").map_err(|error| words(&error))?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let unusual: Vec<String> = names.filter(|name| !USUAL.contains(&name.as_str())).collect();
    if unusual.is_empty() { Ok("only those".to_owned()) } else { Err(unusual.join(", ")) }
}
