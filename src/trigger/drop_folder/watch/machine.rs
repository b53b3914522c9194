//! What a watch needs of the machine it runs on.

use std::path::Path;
use std::sync::Arc;

use notify::{RecommendedWatcher, Watcher};

use crate::trigger::drop_folder::dirty::Dirty;
use crate::trigger::drop_folder::limits::Limits;
use crate::trigger::drop_folder::mounts;

/// What the machine gives. Tests have machines that are short of watches, lose events or have network disks.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    /// Makes a watcher that has its events [marked](Dirty::mark).
    pub watcher: fn(Arc<Dirty>) -> notify::Result<Box<dyn Watcher + Send>>,
    /// What the file system of a folder is called, when others change files there unheard.
    pub remote: fn(&Path) -> Option<&'static str>,
    /// How many folders may be watched.
    pub limits: fn() -> Limits,
}

impl Machine {
    /// This one.
    pub const THIS: Self = Self { watcher: recommended, remote: mounts::remote, limits: Limits::read };
}

fn recommended(dirty: Arc<Dirty>) -> notify::Result<Box<dyn Watcher + Send>> {
    let watcher: RecommendedWatcher = notify::recommended_watcher(move |event| dirty.mark(&event))?;
    Ok(Box::new(watcher))
}
