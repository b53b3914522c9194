//! What a sandbox holds already, so that it is not sent again.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::event::id::Digest;
use crate::sandbox::{Body, Placement};
use crate::workflow::manifest::Access;
use crate::workflow::mode::Mode;
use crate::workflow::path::WorkspacePath;

type Known = BTreeMap<WorkspacePath, (Digest, Option<Mode>)>;

/// The read-only files that were placed, by content. Only these: what the agent may change is not what was sent.
#[derive(Debug, Default)]
pub(in crate::sandbox) struct Sent(Mutex<Known>);

impl Sent {
    /// Those of `files` that do not stand there in the same way.
    pub(in crate::sandbox) fn changed(&self, files: Vec<Placement>) -> Vec<Placement> {
        let known = self.known();
        if known.is_empty() {
            return files;
        }
        let stands =
            |file: &Placement| state(file).is_some_and(|state| known.get(&file.path) == Some(&state));
        files.into_iter().filter(|file| !stands(file)).collect()
    }

    /// Remembers what is about to be placed; the caller forgets the sandbox when that fails.
    pub(in crate::sandbox) fn note(&self, files: &[Placement]) {
        let states = files.iter().filter_map(|file| Some((file.path.clone(), state(file)?)));
        self.known().extend(states);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The content and the mode, where the content is known and the agent cannot have changed it.
fn state(file: &Placement) -> Option<(Digest, Option<Mode>)> {
    if file.access != Access::ReadOnly {
        return None;
    }
    let digest = match (&file.digest, &file.body) {
        (Some(digest), _) => digest.clone(),
        (None, Body::Bytes(bytes)) => Digest::of(bytes),
        (None, Body::File(_)) => return None,
    };
    Some((digest, file.mode))
}
