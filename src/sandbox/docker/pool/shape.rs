//! What is fixed when a container is made, and must therefore be the same for a run to take it.

use crate::sandbox::{ReadyImage, Spec};
use crate::workflow::limits::Limits;
use crate::workflow::network::Network;

/// An image and the limits an engine holds a container to. What else a project says is the same for all its runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shape {
    image: String,
    memory: u64,
    nano_cpus: u64,
    pids: u64,
    disk: u64,
}

impl Shape {
    /// That of a sandbox; nothing for one that is made for its run alone: with a network, or with folders of the host.
    pub(super) fn of(image: &ReadyImage, spec: &Spec) -> Option<Self> {
        let plain = spec.network == Network::None && spec.mounts.is_empty();
        let Limits { memory, nano_cpus, pids, disk, .. } = spec.limits;
        plain.then(|| Self { image: image.digest.clone(), memory, nano_cpus, pids, disk })
    }

    /// What a container of it is started with.
    pub(super) fn spec(&self) -> Spec {
        let Self { memory, nano_cpus, pids, disk, .. } = *self;
        Spec { limits: Limits { memory, nano_cpus, pids, disk, ..Limits::default() }, ..Spec::default() }
    }
}
