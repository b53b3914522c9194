//! Who the agent is, and whom it can become.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::attempt::{field_of, refused_or, status};
use super::{Asked, Held, Probe};
use crate::sys::probe as sys;

pub(super) const PROBES: &[Probe] = &[
    Probe::new("identity/user", "Commands do not run as root.", user),
    Probe::new("identity/groups", "Commands are in no group but their own.", groups),
    Probe::new("identity/become-root", "No command can become root or join root's group.", become_root),
    Probe::new("identity/give-away", "A command cannot make files that belong to root.", give_away),
    Probe::new("identity/setuid-program", "A set-uid program of the image lends no rights.", setuid_program),
];

/// What the kernel says of a user that its namespace does not know (`EINVAL`).
const NO_SUCH_USER: i32 = 22;

fn user(_: &Asked) -> Held {
    let (users, groups) = (status("Uid")?, status("Gid")?);
    let root = |ids: &str| ids.split_whitespace().any(|id| id == "0");
    let found = format!("user {}, group {}", first(&users), first(&groups));
    if root(&users) || root(&groups) { Err(found) } else { Ok(found) }
}

fn first(ids: &str) -> &str {
    ids.split_whitespace().next().unwrap_or_default()
}

fn groups(_: &Asked) -> Held {
    let (own, all) = (status("Gid")?, status("Groups")?);
    let others: Vec<&str> = all.split_whitespace().filter(|id| *id != first(&own)).collect();
    if others.is_empty() {
        Ok("none besides".to_owned())
    } else {
        Err(format!("also in {}", others.join(", ")))
    }
}

fn become_root(_: &Asked) -> Held {
    refused_or(sys::add_group(), NO_SUCH_USER).map_err(|got| format!("setgroups: {got}"))?;
    refused_or(sys::set_group(0), NO_SUCH_USER).map_err(|got| format!("setgid: {got}"))?;
    refused_or(sys::set_user(0), NO_SUCH_USER).map_err(|got| format!("setuid: {got}"))
}

fn give_away(_: &Asked) -> Held {
    let path = "/tmp/probe-give-away";
    fs::write(path, "x").map_err(|error| error.to_string())?;
    let held = refused_or(sys::give_to_root(c"/tmp/probe-give-away"), NO_SUCH_USER);
    // The folder goes with the container.
    let _ = fs::remove_file(path);
    held
}

/// Starts one and looks at whose process it is. The process's own words are read after its end and before it is
/// waited for, so the moment cannot be missed.
fn setuid_program(_: &Asked) -> Held {
    let candidates = ["su", "mount", "passwd", "newgrp", "chsh", "bbsuid"]
        .map(|name| ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(name)));
    let setuid = |path: &&std::path::PathBuf| {
        fs::metadata(path).is_ok_and(|data| data.permissions().mode() & 0o4000 != 0)
    };
    let candidates = candidates.concat();
    let Some(program) = candidates.iter().find(setuid) else {
        return Ok("the image has none".to_owned());
    };
    let started = Command::new(program)
        .arg("--help")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut child = started.map_err(|error| error.to_string())?;
    let file = format!("/proc/{}/status", child.id());
    let users = field_of(&file, "Uid");
    // What matters was read.
    let _ = child.wait();
    let (users, name) = (users?, program.display());
    if users.split_whitespace().any(|id| id == "0") {
        Err(format!("{name} ran as root"))
    } else {
        Ok(format!("{name} ran as user {}", first(&users)))
    }
}
