//! Changing what is under the container, and getting out of it.

use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;

use super::attempt::{none_writable, refused, words};
use super::{Asked, Held, Probe};
use crate::sys::probe as sys;

pub(super) const PROBES: &[Probe] = &[
    Probe::new(
        "filesystem/write",
        "The image's files cannot be changed, so the next command meets the same tools.",
        write,
    ),
    Probe::new("filesystem/mount", "Nothing can be mounted.", mount),
    Probe::new(
        "filesystem/mount-new-way",
        "Nothing can be mounted by the newer calls either.",
        mount_new_way,
    ),
    Probe::new("filesystem/remount", "The read-only root cannot be made writable.", remount),
    Probe::new("filesystem/pivot-root", "The root cannot be exchanged.", pivot_root),
    Probe::new(
        "filesystem/chroot",
        "A command cannot have another root, and so not climb out of it.",
        chroot,
    ),
    Probe::new(
        "filesystem/open-by-handle",
        "Files of the host cannot be opened by their number.",
        open_by_handle,
    ),
    Probe::new("filesystem/root-of-first", "The first process's root leads nowhere else.", root_of_first),
    Probe::new(
        "filesystem/own-program",
        "The helper, and with it the runtime, cannot be overwritten.",
        own_program,
    ),
];

fn write(_: &Asked) -> Held {
    for folder in
        ["/", "/etc", "/usr", "/usr/bin", "/usr/local/bin", "/root", "/var", "/home", "/opt", "/lib"]
    {
        let path = format!("{folder}/tidemill-probe");
        if OpenOptions::new().write(true).create_new(true).open(&path).is_ok() {
            // It is in the way of nobody.
            let _ = fs::remove_file(&path);
            return Err(format!("a file could be made in {folder}"));
        }
    }
    none_writable(&["/etc/passwd", "/etc/hosts", "/etc/resolv.conf", "/etc/hostname", "/etc/ld.so.preload"])
}

fn mount(_: &Asked) -> Held {
    refused(sys::mount(c"/tmp", 0))
}

fn mount_new_way(_: &Asked) -> Held {
    refused(sys::open_filesystem())
}

fn remount(_: &Asked) -> Held {
    const REMOUNT_BIND: usize = 32 | 4096;
    refused(sys::mount(c"/", REMOUNT_BIND))
}

fn pivot_root(_: &Asked) -> Held {
    refused(sys::pivot_root())
}

fn chroot(_: &Asked) -> Held {
    refused(sys::change_root())
}

fn open_by_handle(_: &Asked) -> Held {
    // A file that the engine mounts from the host is on the host's file system.
    let anchor =
        ["/etc/hostname", "/etc/resolv.conf", "/"].into_iter().find_map(|path| File::open(path).ok());
    match anchor {
        Some(file) => refused(sys::open_by_handle(file.as_raw_fd())),
        None => Ok("there is nothing to start from".to_owned()),
    }
}

fn root_of_first(_: &Asked) -> Held {
    let place = |path: &str| fs::metadata(path).map(|data| (data.dev(), data.ino()));
    match (place("/proc/1/root/"), place("/")) {
        (Err(error), _) => Ok(words(&error)),
        (Ok(first), Ok(own)) if first == own => Ok("it is this container's".to_owned()),
        _ => Err("it is another root".to_owned()),
    }
}

fn own_program(_: &Asked) -> Held {
    match OpenOptions::new().write(true).open("/proc/self/exe") {
        Ok(_) => Err("it can be written".to_owned()),
        Err(error) => Ok(words(&error)),
    }
}
