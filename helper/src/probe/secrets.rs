//! What a command learns of the host and its owner.

use std::fs;

use super::attempt::none_readable;
use super::{Asked, Held, Probe};

pub(super) const PROBES: &[Probe] = &[
    Probe::new(
        "secrets/environment",
        "The environment holds nothing that is named like a secret.",
        environment,
    ),
    Probe::new("secrets/files", "Files that hold keys are not there.", files),
    Probe::new("secrets/host-name", "The host's name is not told.", host_name),
    Probe::new("secrets/open-files", "No open file of the engine was left to the command.", open_files),
];

fn environment(_: &Asked) -> Held {
    const WORDS: [&str; 7] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "DOCKER_HOST"];
    // A distribution's public signing key is no secret: the official Python images name theirs so.
    let public = |name: &str| name == "GPG_KEY" || name == "GPG_KEYS";
    let names = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    let found: Vec<String> = names
        .filter(|name| !public(name) && WORDS.iter().any(|word| name.to_ascii_uppercase().contains(word)))
        .collect();
    if found.is_empty() { Ok("none".to_owned()) } else { Err(found.join(", ")) }
}

fn files(_: &Asked) -> Held {
    none_readable(&[
        "/etc/shadow",
        "/etc/gshadow",
        "/run/secrets/kubernetes.io/serviceaccount/token",
        "/var/run/secrets/kubernetes.io/serviceaccount/token",
        "/root/.ssh/id_rsa",
        "/root/.ssh/id_ed25519",
        "/root/.aws/credentials",
        "/root/.docker/config.json",
    ])
}

fn host_name(asked: &Asked) -> Held {
    let own = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let own = own.trim();
    match &asked.host {
        Some(host) if host == own => Err(format!("it is {own}")),
        _ => Ok(format!("it is called {own}")),
    }
}

fn open_files(_: &Asked) -> Held {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc/self/fd").into_iter().flatten().flatten() {
        let Ok(link) = fs::read_link(entry.path()) else { continue };
        let (number, link) = (entry.file_name(), link.to_string_lossy().into_owned());
        let own = link.starts_with("/proc/") && link.ends_with("/fd");
        let usual = ["0", "1", "2"].iter().any(|usual| number == *usual);
        if !own && !usual {
            found.push(format!("{} is {link}", number.to_string_lossy()));
        }
    }
    if found.is_empty() { Ok("none".to_owned()) } else { Err(found.join(", ")) }
}
